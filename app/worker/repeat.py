"""When a trial has been repeated often enough."""

import math
import statistics
from collections.abc import Sequence

from app.domain.trial import Sample

TARGET_FRAC = 0.02
# two-sided 95 % quantiles of Student's t for 1…9 degrees of freedom; beyond: 2.1
_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
# standard error of a median ÷ standard error of a mean, normal samples
_MEDIAN_SE = 1.2533


def settled(samples: Sequence[Sample]) -> bool:
    """Whether the 95 % interval of the median is within ± 2 % of it."""
    if len(samples) < 2:
        return False
    rates = [s.n_tok / s.ns for s in samples]
    freedom = len(rates) - 1
    t95 = _T95[freedom - 1] if freedom <= len(_T95) else 2.1
    half = t95 * _MEDIAN_SE * statistics.stdev(rates) / math.sqrt(len(rates))
    return half <= TARGET_FRAC * statistics.median(rates)
