"""The speed model of what a search has timed so far."""

from collections.abc import Callable

from app.domain.settings import Settings
from app.sweep.expert_line import ExpertLine, expert_line
from app.sweep.known import Known
from app.sweep.ladder import Rung
from app.sweep.speed_model import SpeedModel


def speed_model(s: Known, ladder: tuple[Rung, ...]) -> SpeedModel:
    """Return the speed model on ``ladder``; what spilled unseen is left out."""
    devices = max((t.request.settings.devices for t in s.trials), key=len, default=())
    base = Settings(n_gpu_layers=0, n_ctx=s.plan.n_ctx, devices=devices, n_seq_max=s.workload.n_seq)

    def rung_bytes(index: int) -> int | None:
        need = s.bounds.need(ladder[index].of(base))
        return None if need.note else sum(need.device_bytes().values())

    shallow_s = s.cpu_decode_s()
    at_depth = (p.decode_s for p in s.clean() if not p.settings.devices)
    return SpeedModel(
        (p for p in s.points().values() if not p.disturbed and s.bounds.ok(p.settings)),
        (p for p in s.screens().values() if not p.disturbed),
        ladder,
        s.demand,
        rung_bytes,
        (min(at_depth, default=shallow_s), shallow_s),
        _expert_line(s, rung_bytes) if ladder == s.experts else None,
    )


def _expert_line(s: Known, rung_bytes: Callable[[int], int | None]) -> ExpertLine | None:
    """Return what experts in RAM cost, where the trials tell."""
    n_blocks = s.plan.space.model.n_layer
    index = {rung: i for i, rung in enumerate(s.experts)}
    ends = (Rung(n_gpu_layers=n_blocks + n, n_cpu_moe=n_blocks) for n in (0, 1))
    without, whole = (rung_bytes(index[r]) if r in index else None for r in ends)
    if without is None or whole is None:
        return None
    output_bytes = whole - without
    block_bytes = (s.plan.space.model.file_bytes - output_bytes) / n_blocks
    if block_bytes <= 0:
        return None
    return expert_line(s.points().values(), n_blocks, output_bytes / block_bytes)
