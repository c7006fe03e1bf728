"""Speed, draw and heat per power limit, and the limit that gives the most for its joules."""

import math
from collections.abc import Sequence
from itertools import pairwise

from app.domain.record import Record
from app.domain.trial import Rate, Workload
from app.power.heating import Heating
from app.power.protocol import Range

LOSS_FRAC_MAX = 0.05
ROOM_C = (18.0, 32.0)
SUSTAINED_S = 1800.0
SOAK_FRAC = 0.1
"""Cases and laptop bodies go on warming for half an hour, longer than a limit is measured: up to
a tenth of the rise, so the upper bound has that on top."""


class CapPoint(Record, frozen=True, kw_only=True):
    """What one power limit gives.

    Attributes:
        cap_w: Limit set.
        decode_tok_s: Decode speed at steady temperature.
        prefill_tok_s: Prefill speed, where it was measured.
        power_w: Mean draw.
        temp_c: Temperature at the end.
        fan_pct: Fan at the end: the noise.
        heating: How it warmed up.
        is_steady: Whether the temperature had settled; if not, the figures are still rising.
        throttled: Whether heat slowed the device down meanwhile.
        slowest_tok_s: Slowest ten samples in a row, decode.
        fastest_tok_s: Fastest ten samples in a row, decode.
        refused: Code of why the limit could not be set; then nothing else is known.
    """

    cap_w: float
    decode_tok_s: Rate | None = None
    prefill_tok_s: Rate | None = None
    power_w: float | None = None
    temp_c: float | None = None
    fan_pct: float | None = None
    heating: Heating | None = None
    is_steady: bool = False
    throttled: bool = False
    slowest_tok_s: float | None = None
    fastest_tok_s: float | None = None
    refused: str | None = None

    @property
    def tok_per_j(self) -> float | None:
        """Decoded tokens per joule."""
        if self.decode_tok_s is None or not self.power_w:
            return None
        return self.decode_tok_s.median / self.power_w


class CapChoice(Record, frozen=True, kw_only=True):
    """The recommended limit.

    Attributes:
        point: Index of it.
        fastest: Index of the fastest.
        loss_frac: Speed given up against the fastest.
        saved_frac: Energy saved per token (or request) against the fastest.
    """

    point: int
    fastest: int
    loss_frac: float
    saved_frac: float


class Sustained(Record, frozen=True, kw_only=True):
    """Speed to expect after half an hour.

    Attributes:
        decode_tok_s: Speed with its interval.
        temp_c: Temperature then (where the firmware holds it, if it must).
        power_w: Draw that the cooler can keep up with.
        is_limited: Whether heat will limit it.
    """

    decode_tok_s: Rate
    temp_c: float
    power_w: float
    is_limited: bool


def caps_to_try(allowed: Range, n: int = 6) -> tuple[float, ...]:
    """Return limits from the one found down to the floor, evenly, in whole watts."""
    low, high = math.ceil(allowed.low), math.floor(allowed.high)
    steps = min(max(2, n), high - low + 1)
    caps = [high - (high - low) * i / (steps - 1) for i in range(steps)] if steps > 1 else [high]
    return tuple(dict.fromkeys(float(round(cap)) for cap in caps))


def request_s(point: CapPoint, workload: Workload | None) -> float | None:
    """Return seconds per request (per token without a workload), ``None`` when not measured."""
    if point.decode_tok_s is None:
        return None
    if workload is None or point.prefill_tok_s is None:
        return 1.0 / point.decode_tok_s.median
    prefill_s = workload.n_prompt / point.prefill_tok_s.median
    return prefill_s + workload.n_gen / point.decode_tok_s.median


def choose_cap(points: Sequence[CapPoint], workload: Workload | None = None) -> CapChoice | None:
    """Return the limit with the least energy among those within 5 % of the fastest.

    Decode hardly needs the last watts and prefill does, so the answer depends on the workload.

    Args:
        points: What was measured.
        workload: What a request is; ``None`` = decode alone.
    """
    timed = {
        i: seconds
        for i, p in enumerate(points)
        if p.power_w and (seconds := request_s(p, workload))
    }
    if not timed:
        return None
    energy = {i: seconds * (points[i].power_w or 0.0) for i, seconds in timed.items()}
    fastest = min(timed, key=lambda i: timed[i])
    near = [i for i in timed if timed[i] <= timed[fastest] / (1 - LOSS_FRAC_MAX)]
    best = min(near, key=lambda i: (energy[i], points[i].cap_w))
    return CapChoice(
        point=best,
        fastest=fastest,
        loss_frac=1 - timed[fastest] / timed[best],
        saved_frac=1 - energy[best] / energy[fastest],
    )


def predict_sustained(
    points: Sequence[CapPoint], index: int, slowdown_c: float | None
) -> Sustained | None:
    """Return the speed to expect after 30 minutes at a limit, ``None`` where it cannot be said.

    While the fitted temperature stays below the slowdown, the measured speed stays. Above it, the
    draw falls to what the cooler carries away at that temperature, and the speed to what the
    other limits show for that draw.

    Args:
        points: Everything measured, each at its own limit.
        index: Limit in question.
        slowdown_c: Where the firmware slows down; ``None`` = never by heat.
    """
    point = points[index]
    rate, heat, power = point.decode_tok_s, point.heating, point.power_w
    if rate is None or heat is None or power is None:
        return None
    end_c = heat.at(SUSTAINED_S)
    high_c = heat.high_c + SOAK_FRAC * max(0.0, heat.high_c - ROOM_C[0])
    if slowdown_c is None or (high_c < slowdown_c and not point.throttled):
        return Sustained(decode_tok_s=rate, temp_c=end_c, power_w=power, is_limited=False)
    # How deep a firmware cuts is not known before it is seen for long: as deep as the lowest
    # limit, perhaps.
    lowest = min(p.decode_tok_s.low for p in points if p.decode_tok_s)
    if point.throttled:
        seen = Rate(
            median=rate.median,
            low=min(lowest, rate.low, point.slowest_tok_s or rate.low),
            high=max(rate.high, point.fastest_tok_s or rate.high),
        )
        return Sustained(decode_tok_s=seen, temp_c=slowdown_c, power_w=power, is_limited=True)
    # The room is not measured, so the cooler's worth has an interval from it alone.
    carried = [
        min(power, power * (slowdown_c - room) / (final - room))
        for room in ROOM_C
        for final in (heat.final_c, high_c)
    ]
    steady = [speed_at(points, watts) for watts in carried]
    # A firmware that swings between full speed and a low clock loses more than a steady draw.
    swinging = [rate.median * watts / power for watts in carried]
    spread = Rate(
        median=sum(steady + swinging) / (2 * len(carried)),
        low=min(lowest, min(swinging) * rate.low / rate.median),
        high=max(steady) * rate.high / rate.median,
    )
    return Sustained(
        decode_tok_s=spread,
        temp_c=min(end_c, slowdown_c),
        power_w=sum(carried) / len(carried),
        is_limited=heat.final_c >= slowdown_c,
    )


def speed_at(points: Sequence[CapPoint], watts: float) -> float:
    """Return the decode speed at a draw, interpolated between what was measured, tok/s.

    Below the lowest draw it falls in proportion, which is what a clock-bound device does.
    """
    known = sorted(
        (p.power_w, p.decode_tok_s.median) for p in points if p.power_w and p.decode_tok_s
    )
    lowest_w, lowest = known[0]
    if watts <= lowest_w:
        return lowest * watts / lowest_w
    for (w0, s0), (w1, s1) in pairwise(known):
        if watts <= w1:
            return s0 + (s1 - s0) * (watts - w0) / max(1e-9, w1 - w0)
    return known[-1][1]
