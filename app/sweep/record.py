"""Turns a finished search into a replay file's content: our debug bundle and test bench."""

from collections.abc import Mapping, Sequence
from statistics import fmean, median, stdev

import msgspec

from app.domain.memory import MemoryEstimate
from app.domain.outcome import Outcome
from app.domain.settings import Settings, SplitMode, Switch
from app.domain.sweep import SearchDevice, SweepPlan
from app.domain.trial import Trial
from app.rig.replay_file import FORMAT, Replay, ReplayPoint, SettingValue
from app.rig.virtual import HEADROOM_BYTES
from app.sweep.points import is_disturbed, measured_settings, usable
from app.sweep.stats import seconds_per_token

_NAMES = (
    "n_gpu_layers", "n_cpu_moe", "n_ctx", "n_ubatch", "flash_attn", "type_k", "type_v",
    "n_threads", "load_mode", "devices",
)  # fmt: skip

_Key = tuple[Settings, int]


def recorded(
    plan: SweepPlan, trials: Sequence[Trial], dry_runs: Mapping[Settings, MemoryEstimate]
) -> Replay:
    """Return the recording of a search: replaying it leads to the same recommendation.

    Configurations that were only planned are kept as ``unsupported`` points that carry their
    need, so that the replay knows the same bounds.

    Args:
        plan: The plan that ran.
        trials: What was measured.
        dry_runs: What the dry run answered.
    """
    groups: dict[_Key, list[Trial]] = {}
    for trial in trials:
        key = (measured_settings(trial), trial.request.workload.depth)
        groups.setdefault(key, []).append(trial)
    points = [
        _measured(settings, depth, group, dry_runs) for (settings, depth), group in groups.items()
    ]
    planned = [p for p in _planned(dry_runs) if p.settings not in [q.settings for q in points]]
    loads = [t.load_s for t in trials if t.load_s is not None]
    return Replay(
        format=FORMAT,
        model=plan.space.model,
        host=plan.space.host,
        devices=tuple(_device(d, plan, dry_runs) for d in plan.space.devices),
        noise_frac=round(_noise_frac(trials), 4),
        seed=0,
        load_s=round(median(loads), 3) if loads else plan.space.load_s,
        points=(*planned, *_at_no_depth(points), *points),
    )


def _at_no_depth(points: Sequence[ReplayPoint]) -> list[ReplayPoint]:
    """Return points at depth 0 for settings that were only measured deeper.

    A dry run asks there. A planned point would hide the measured one; without any, the need of
    another batch size would answer. Speeds are those the format says: of the nearest depth.
    """
    found: dict[str, ReplayPoint] = {}
    for point in sorted(points, key=lambda p: p.depth):
        found.setdefault(repr(point.settings), point)
    return [msgspec.structs.replace(p, depth=0) for p in found.values() if p.depth]


def _planned(dry_runs: Mapping[Settings, MemoryEstimate]) -> list[ReplayPoint]:
    return [
        ReplayPoint(
            settings=_stated(settings),
            outcome=Outcome.UNSUPPORTED,
            device_bytes=need.device_bytes(),
        )
        for settings, need in dry_runs.items()
        if need.note is None
    ]


def _measured(
    settings: Settings,
    depth: int,
    group: list[Trial],
    dry_runs: Mapping[Settings, MemoryEstimate],
) -> ReplayPoint:
    """Return one point of repeated trials: the largest workload counts, undisturbed first."""
    planned = dry_runs.get(group[-1].request.settings)
    n_bytes = group[-1].device_bytes if planned is None else planned.device_bytes()
    growth = max(0, *(t.shared_growth_bytes or 0 for t in group))
    good = [t for t in group if usable(t)]
    if not good or not usable(group[-1]):
        return ReplayPoint(
            settings=_stated(settings),
            depth=depth,
            outcome=group[-1].outcome,
            device_bytes=n_bytes,
            shared_growth_bytes=growth,
        )
    good = [t for t in good if not is_disturbed(t)] or good
    most = max((t.request.workload.n_prompt, t.request.workload.n_gen) for t in good)
    same = [t for t in good if (t.request.workload.n_prompt, t.request.workload.n_gen) == most]
    prefill = [v for t in same for v in seconds_per_token(t.prefill)]
    decode = [v for t in same for v in seconds_per_token(t.decode)]
    return ReplayPoint(
        settings=_stated(settings),
        depth=depth,
        outcome=Outcome.OK,
        prefill_tok_s=round(1 / median(prefill), 4),
        decode_tok_s=round(1 / median(decode), 4),
        device_bytes=n_bytes,
        shared_growth_bytes=growth,
    )


def _stated(settings: Settings) -> dict[str, SettingValue]:
    stated: dict[str, SettingValue] = {n: getattr(settings, n) for n in _NAMES}
    if settings.n_threads_batch not in (0, settings.n_threads):
        stated["n_threads_batch"] = settings.n_threads_batch
    for name in ("tensor_split", "override_tensor"):
        if getattr(settings, name):
            stated[name] = getattr(settings, name)
    if settings.split_mode is not SplitMode.LAYER:
        stated["split_mode"] = settings.split_mode
    for name in ("offload_kqv", "op_offload"):
        if getattr(settings, name) is Switch.OFF:
            stated[name] = Switch.OFF
    stated["flash_attn"] = "off" if settings.flash_attn == "off" else "on"
    return stated


def _device(
    device: SearchDevice, plan: SweepPlan, dry_runs: Mapping[Settings, MemoryEstimate]
) -> SearchDevice:
    """Return the device with the free memory that leaves a replay's headroom the same bound.

    A replay knows one default headroom; a card that drives a display has a larger one.
    """
    if plan.request.headroom_bytes is not None:
        return device
    parts = (d for need in dry_runs.values() for d in need.devices if d.device == device.id)
    part = next(parts, None)
    if part is None or part.free_bytes is None:
        return device
    extra = part.headroom_bytes - HEADROOM_BYTES
    return SearchDevice(
        id=device.id,
        kind=device.kind,
        backend=device.backend,
        total_bytes=device.total_bytes,
        free_bytes=max(0, part.free_bytes - extra),
    )


def _noise_frac(trials: Sequence[Trial]) -> float:
    """Return the typical relative standard deviation of one pass."""
    spreads = []
    for trial in trials:
        for samples in (trial.prefill, trial.decode):
            times = seconds_per_token(samples)
            if len(times) > 2:
                spreads.append(stdev(times) / fmean(times))
    return min(0.5, median(spreads)) if spreads else 0.0
