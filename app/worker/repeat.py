"""When a trial has been repeated often enough.

The interval is that of ``app.sweep.stats`` (Student's t times the standard error of a median),
which the worker does not carry; a test holds the two together.
"""

import math
import statistics
from collections.abc import Sequence

from app.domain.trial import Sample

TARGET_FRAC = 0.02
# two-sided 95 % quantiles of Student's t for 1…15 degrees of freedom; beyond: 2.12
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131,
)  # fmt: skip


def settled(samples: Sequence[Sample]) -> bool:
    """Whether the 95 % interval of the median is within ± 2 % of it."""
    return len(samples) > 1 and half_width_frac(samples) <= TARGET_FRAC


def half_width_frac(samples: Sequence[Sample]) -> float:
    """Return half the 95 % interval of the median time per token, as a share of it (n ≥ 2)."""
    times = [s.ns / s.n_tok for s in samples]
    n = len(times)
    t95 = _T95[n - 2] if n - 2 < len(_T95) else 2.12
    # standard error of the median of n normal samples
    error = statistics.stdev(times) * math.sqrt(math.pi / (2 * (n + math.pi / 2 - 1)))
    return t95 * error / statistics.median(times)
