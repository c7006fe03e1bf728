"""How a device warms up: a first-order curve fitted to what was seen, with its uncertainty."""

import math
from collections.abc import Sequence

from app.domain.record import Record

TAUS_S = tuple(10.0 * 1.04**i for i in range(130))
"""Time constants tried, 10 s to about half an hour."""

MIN_SAMPLES = 30
STEADY_WINDOW_S = 90.0
STEADY_C_PER_MIN = 0.6
RESOLUTION_C = 0.3
"""Sensors count in whole degrees; no interval is narrower than what that leaves."""

Point = tuple[float, float]


class Heating(Record, frozen=True, kw_only=True):
    """``temp(t) = final_c - gap_c * exp(-t / tau_s)``, and what ``final_c`` may be (95 %)."""

    final_c: float
    low_c: float
    high_c: float
    gap_c: float
    tau_s: float

    def at(self, t_s: float) -> float:
        """Return the temperature at ``t_s`` on the clock of the samples, °C."""
        return self.final_c - self.gap_c * math.exp(-t_s / self.tau_s)


def is_steady(points: Sequence[Point]) -> bool:
    """Whether the temperature of (seconds, °C) hardly moves any more (0.6 °C per minute)."""
    if not points or points[-1][0] - points[0][0] < STEADY_WINDOW_S:
        return False
    recent = [p for p in points if p[0] >= points[-1][0] - STEADY_WINDOW_S]
    slope, _ = _line([t for t, _ in recent], [c for _, c in recent])
    return abs(slope) * 60.0 <= STEADY_C_PER_MIN


def fit_heating(points: Sequence[Point]) -> Heating | None:
    """Return the curve through (seconds, °C); ``None`` with too few points to tell.

    Every time constant is tried; those that fit nearly as well as the best one span the interval
    (an F-like bound at two standard errors).
    """
    if len(points) < MIN_SAMPLES:
        return None
    temps = [c for _, c in points]
    tries = []
    for tau in TAUS_S:
        waned = [math.exp(-(t - points[0][0]) / tau) for t, _ in points]
        gap, final = _line(waned, temps)
        error = sum((final + gap * w - c) ** 2 for w, c in zip(waned, temps, strict=True))
        tries.append((error, final, -gap * math.exp(points[0][0] / tau), tau))
    error, final, gap, tau = min(tries)
    bound = error + 4.0 * max(error / (len(points) - 3), RESOLUTION_C**2 / 12)
    finals = [f for e, f, _, _ in tries if e <= bound]
    return Heating(
        final_c=final,
        low_c=min(finals) - RESOLUTION_C,
        high_c=max(finals) + RESOLUTION_C,
        gap_c=gap,
        tau_s=tau,
    )


def _line(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Return slope and intercept of the least-squares line."""
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    spread = sum((x - mean_x) ** 2 for x in xs)
    if spread < 1e-12:
        return 0.0, mean_y
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    return slope, mean_y - slope * mean_x
