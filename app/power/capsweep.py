"""Measures one power limit after another, each at steady temperature, and puts it back."""

import math
from collections.abc import Generator, Sequence
from statistics import fmean
from typing import Protocol

from app.domain.record import Record
from app.domain.trial import Rate
from app.power.caps import CapPoint
from app.power.heating import STEADY_WINDOW_S, fit_heating, is_steady
from app.power.records import THERMAL

MIN_S, MAX_S = 120.0, 420.0
"""At least two minutes per limit; after seven a temperature still rising is said to be."""

RAMP_S = 10.0
TEN = 10


class CapSample(Record, frozen=True, kw_only=True):
    """About a second of the workload.

    Attributes:
        t_s: Seconds on a steady clock.
        decode_tok_s: Decode speed, if it decoded.
        prefill_tok_s: Prefill speed, if it did that.
        power_w: Draw.
        temp_c: Core temperature.
        fan_pct: Fan.
        throttle: Throttle reasons.
    """

    t_s: float
    decode_tok_s: float | None = None
    prefill_tok_s: float | None = None
    power_w: float | None = None
    temp_c: float | None = None
    fan_pct: float | None = None
    throttle: tuple[str, ...] = ()


class CapBench(Protocol):
    """Runs the workload and sets limits; a real one through worker and helper."""

    def set_cap(self, watts: float) -> str | None:
        """Set a limit and read it back; the code of why not, ``None`` when it holds."""
        ...

    def sample(self) -> CapSample:
        """Run the workload for about a second."""
        ...

    def restore(self) -> None:
        """Put the limit back."""
        ...


def sweep_caps(bench: CapBench, caps: Sequence[float], max_s: float = MAX_S) -> Generator[CapPoint]:
    """Yield what each limit gives, as ``follow_caps`` does, without the samples."""
    for step in follow_caps(bench, caps, max_s):
        if isinstance(step, CapPoint):
            yield step


def follow_caps(
    bench: CapBench, caps: Sequence[float], max_s: float = MAX_S
) -> Generator[CapSample | CapPoint]:
    """Yield every sample, and what each limit gives, from the highest down.

    The limit is put back in any case. The first limit that cannot be set ends it: the others
    would not be different.

    Args:
        bench: Where to measure.
        caps: Limits, W.
        max_s: Longest time per limit.
    """
    try:
        for cap in caps:
            why_not = bench.set_cap(cap)
            if why_not is not None:
                yield CapPoint(cap_w=cap, refused=why_not)
                return
            point = yield from follow_cap(bench, cap, max_s)
            yield point
    finally:
        bench.restore()


def measure_cap(bench: CapBench, cap_w: float, max_s: float = MAX_S) -> CapPoint:
    """Return what the limit in force gives once the temperature has settled."""
    steps = follow_cap(bench, cap_w, max_s)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            point: CapPoint = stop.value
            return point


def follow_cap(
    bench: CapBench, cap_w: float, max_s: float = MAX_S
) -> Generator[CapSample, None, CapPoint]:
    """Yield the samples at the limit in force; return what they say once it has settled."""
    samples = [bench.sample()]
    yield samples[0]
    start_s = samples[0].t_s
    while (elapsed_s := samples[-1].t_s - start_s) < max_s:
        if elapsed_s >= MIN_S and _has_settled(samples):
            break
        samples.append(bench.sample())
        yield samples[-1]
    return _point(cap_w, samples)


def _point(cap_w: float, samples: Sequence[CapSample]) -> CapPoint:
    middle_s = (samples[0].t_s + samples[-1].t_s) / 2
    late = [s for s in samples if s.t_s >= middle_s]
    powers = [s.power_w for s in late if s.power_w is not None]
    decode = [s.decode_tok_s for s in samples if s.decode_tok_s]
    tens = [fmean(decode[i : i + TEN]) for i in range(max(1, len(decode) - TEN + 1)) if decode]
    return CapPoint(
        cap_w=cap_w,
        decode_tok_s=median_rate([s.decode_tok_s for s in late if s.decode_tok_s]),
        prefill_tok_s=median_rate([s.prefill_tok_s for s in late if s.prefill_tok_s]),
        power_w=fmean(powers) if powers else None,
        temp_c=samples[-1].temp_c,
        fan_pct=samples[-1].fan_pct,
        heating=fit_heating(_temps(samples, RAMP_S)),
        is_steady=_has_settled(samples),
        slowest_tok_s=min(tens, default=None),
        fastest_tok_s=max(tens, default=None),
        throttled=any(THERMAL & set(s.throttle) for s in samples),
    )


def median_rate(speeds: Sequence[float]) -> Rate | None:
    """Return the median with its 95 % interval by order statistics, ``None`` without speeds."""
    if not speeds:
        return None
    ordered, n = sorted(speeds), len(speeds)
    reach = 0.98 * math.sqrt(n)
    low = max(0, math.floor((n - 1) / 2 - reach))
    high = min(n - 1, math.ceil((n - 1) / 2 + reach))
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return Rate(median=middle, low=ordered[low], high=ordered[high])


def _has_settled(samples: Sequence[CapSample]) -> bool:
    """Whether it is steady by itself, not because the firmware has just cut the clock."""
    window = [s for s in samples if s.t_s >= samples[-1].t_s - STEADY_WINDOW_S]
    return is_steady(_temps(samples)) and not any(THERMAL & set(s.throttle) for s in window)


def _temps(samples: Sequence[CapSample], skip_s: float = 0.0) -> list[tuple[float, float]]:
    start_s = samples[0].t_s
    return [
        (s.t_s - start_s, s.temp_c)
        for s in samples
        if s.temp_c is not None and s.t_s - start_s >= skip_s
    ]
