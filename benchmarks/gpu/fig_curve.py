"""The curve that three trials predict, against the curve as it is."""

from statistics import median
from typing import TYPE_CHECKING

import msgspec
from lab import Lab, brief, run

from app.domain.sweep import SweepRequest
from app.domain.trial import Trial, Workload
from app.rig.interface import Rig
from app.sweep.ladder import layer_ladder
from app.sweep.points import Demand, build_points
from app.sweep.speed_model import SpeedModel, family_of

if TYPE_CHECKING:
    from app.domain.settings import Settings


def curve(lab: Lab) -> None:
    """Time layer counts from none to all; predict each from none, half and all."""
    spec = lab.spec("a")
    full = spec.max_gpu_layers
    known = [full, spec.n_layer // 2, 0]
    others = [full - 1, full - 2, full - 4, 4, 8, 12, 18, 20, 22, 2, 16, full - 3, 24]
    layers = [*known, *(n for n in dict.fromkeys(others) if 0 < n < full and n not in known)]
    work = Workload(n_prompt=lab.pick(512, 32), n_gen=32)
    trials: list[Trial] = []
    with lab.stand_in(), lab.rig("a") as rig:
        for n_gpu_layers in layers:
            if lab.left_s < lab.pick(10, 0):
                lab.result.add("left_out", n_gpu_layers)
                continue
            settings = lab.settings(n_gpu_layers, n_ctx=4096)
            trials.append(run(rig, settings, work, 2, stage="curve"))
            lab.result.add("rows", brief(trials[-1]))
        lab.result.put("prediction", predicted(rig, trials, work))


def predicted(rig: Rig, trials: list[Trial], work: Workload) -> dict[str, object]:
    """Return each other point's speeds as the first three predict them, and the errors."""
    space = rig.space()
    ladder = layer_ladder(SweepRequest(), space)
    need = Demand(n_prompt=512, n_gen=256)
    points = build_points(trials, work, need)
    base: Settings = trials[0].request.settings

    def rung_bytes(index: int) -> int | None:
        estimate = rig.dry_run(ladder[index].of(base))
        return None if estimate.note else sum(estimate.device_bytes().values())

    three = list(build_points(trials[:3], work, need).values())
    model = SpeedModel(three, (), ladder, need, rung_bytes)
    rows = []
    for settings, point in points.items():
        if point in three or point.request is None:
            continue
        index = next(i for i, r in enumerate(ladder) if r == point.rung)
        phases = model.phases(family_of(three[0].settings), index)
        if phases is None:
            continue
        ours = need.n_prompt * phases[0] + need.n_gen * phases[1]
        rows.append({
            "n_gpu_layers": settings.n_gpu_layers,
            "request_error": round(ours / point.request_s - 1, 4),
            "prefill_error": round(point.prefill_s / phases[0] - 1, 4),
            "decode_error": round(point.decode_s / phases[1] - 1, 4),
        })  # fmt: skip
    fields = ("request_error", "prefill_error", "decode_error")
    middle = {f: median(abs(float(r[f])) for r in rows) if rows else None for f in fields}
    return msgspec.to_builtins({"rows": rows, "median": middle})  # type: ignore[no-any-return]
