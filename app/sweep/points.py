"""What the trials say, per configuration: samples of repeated trials put together."""

from collections.abc import Iterable, Sequence

import msgspec

from app.domain.outcome import OUTCOMES, Outcome
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import GOAL_WORKLOADS, SweepPlan
from app.domain.trial import Trial, Workload
from app.domain.units import MIB
from app.sweep.ladder import Rung, rung_of
from app.sweep.stats import Estimate, estimate, middle_of, seconds_per_token

SPILL_BYTES = 64 * MIB
SLIGHT_GROWTH_BYTES = 8 * MIB  # no spill yet, but what lies there is slower


class Demand(Record, frozen=True, kw_only=True):
    """The goal's request, tokens per sequence: what the request time is computed for."""

    n_prompt: int
    n_gen: int


def demand(plan: SweepPlan) -> Demand:
    """Return the prompt and answer of the goal, per sequence (all run together)."""
    work = GOAL_WORKLOADS[plan.request.goal]
    return Demand(n_prompt=work.n_prompt, n_gen=work.n_gen)


class Point(Record, frozen=True, kw_only=True):
    """One configuration at the goal's depth.

    Attributes:
        settings: What ran (flash attention as the engine decided).
        indices: Its trials.
        load_ids: Loads it ran on, one per trial.
        outcome: How its last trial ended.
        prefill: Seconds per prompt token, per pass.
        decode: Seconds per generated token, per pass; those of its kin too (see ``kin``).
        times: Seconds for the goal's request, per pass.
        request: Middle and interval of ``times``; ``None`` without a speed.
        device_bytes: Need per device.
        growth_bytes: Growth of shared memory, ``None`` if not known.
        disturbed: Whether something slowed down every trial of it.
        is_reference: Whether it is measured for comparison only: the user pinned something else.
        own_half_width: Seconds of ``request``'s uncertainty that it does not share with its kin
            (see ``kin``); ``None`` where it shares nothing.
    """

    settings: Settings
    indices: tuple[int, ...]
    load_ids: tuple[int, ...]
    outcome: Outcome
    prefill: tuple[float, ...] = ()
    decode: tuple[float, ...] = ()
    times: tuple[float, ...] = ()
    request: Estimate | None = None
    device_bytes: dict[str, int] = {}
    growth_bytes: int | None = None
    disturbed: bool = False
    is_reference: bool = False
    own_half_width: float | None = None

    @property
    def rung(self) -> Rung:
        """Its placement."""
        return rung_of(self.settings)

    @property
    def total_bytes(self) -> int:
        """Its need over all devices."""
        return sum(self.device_bytes.values())

    @property
    def request_s(self) -> float:
        """Middle of the seconds for the goal's request; infinite without a speed."""
        return float("inf") if self.request is None else self.request.median

    @property
    def prefill_s(self) -> float:
        """Middle of the seconds per prompt token."""
        return middle_of(self.prefill)

    @property
    def decode_s(self) -> float:
        """Middle of the seconds per generated token."""
        return middle_of(self.decode)

    @property
    def grew(self) -> bool:
        """Whether shared memory grew more than a spill-free run explains."""
        return (self.growth_bytes or 0) > SPILL_BYTES or self.outcome is Outcome.SPILLED

    @property
    def is_memory(self) -> bool:
        """Whether it ended because of memory."""
        return OUTCOMES[self.outcome].is_memory

    @property
    def is_clean(self) -> bool:
        """Whether it has a speed, may win and did not use shared memory."""
        may_win = OUTCOMES[self.outcome].may_win and not self.is_reference
        return self.request is not None and may_win and not self.grew


def measured_settings(trial: Trial) -> Settings:
    """Return the requested settings with flash attention as the engine decided."""
    if trial.effective is None:
        return trial.request.settings
    return msgspec.structs.replace(trial.request.settings, flash_attn=trial.effective.flash_attn)


def usable(trial: Trial) -> bool:
    """Whether the trial carries a speed that nothing disturbed."""
    return OUTCOMES[trial.outcome].has_speed and bool(trial.prefill and trial.decode)


def is_disturbed(trial: Trial) -> bool:
    """Whether something outside slowed the trial down."""
    window = trial.telemetry
    throttled = trial.outcome is Outcome.THROTTLED
    return throttled or (window is not None and window.disturbed is not None)


def counted(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of one configuration whose passes count.

    One repeated because it was disturbed counts only as long as there is no better one.
    """
    good = [t for t in trials if usable(t)]
    return [t for t in good if not is_disturbed(t)] or good[-1:]


def build_points(
    trials: Sequence[Trial], workload: Workload, need: Demand
) -> dict[Settings, Point]:
    """Return every configuration timed with ``workload``, by what ran."""
    groups: dict[Settings, list[int]] = {}
    for index, trial in enumerate(trials):
        if trial.request.workload == workload:
            groups.setdefault(measured_settings(trial), []).append(index)
    return {s: _point(s, indices, trials, need) for s, indices in groups.items()}


def _point(settings: Settings, indices: list[int], trials: Sequence[Trial], need: Demand) -> Point:
    chosen = [(i, trials[i]) for i in indices]
    good = counted([t for _, t in chosen])
    prefill = _flat(seconds_per_token(t.prefill) for t in good)
    decode = _flat(seconds_per_token(t.decode) for t in good)
    times = tuple(need.n_prompt * p + need.n_gen * d for p, d in zip(prefill, decode, strict=False))
    growth = [t.shared_growth_bytes for _, t in chosen if t.shared_growth_bytes is not None]
    last = good[-1] if good else chosen[-1][1]
    failed = [t for _, t in chosen if OUTCOMES[t.outcome].is_memory]
    return Point(
        settings=settings,
        indices=tuple(indices),
        load_ids=tuple(t.load_id for t in good),
        outcome=failed[-1].outcome if failed else last.outcome,
        prefill=prefill,
        decode=decode,
        times=times,
        request=estimate(times) if times else None,
        device_bytes=last.device_bytes,
        growth_bytes=max(growth, default=None),
        disturbed=bool(good) and is_disturbed(good[-1]),
    )


def _flat(parts: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(v for part in parts for v in part)
