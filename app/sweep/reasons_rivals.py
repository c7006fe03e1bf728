"""What the answer was measured against: the CPU alone, llama.cpp's own fit, the next best."""

from collections.abc import Iterator

from app.domain.settings import SETTINGS, Settings
from app.domain.sweep import Reason, Recommended, SweepResult
from app.sweep.compare import difference
from app.sweep.pick import undecided_rival
from app.sweep.points import Point
from app.sweep.reasons_knobs import behind, gain_pct, told_apart
from app.sweep.reasons_time import reason
from app.sweep.search import Search

NEAR_FRAC = 0.1  # what is further behind needs no word about noise


def explain_references(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    """Yield what the GPU and the search are worth: against the CPU and llama.cpp's own fit."""
    yield from _against_cpu(search, winner, _point_of(search, result.baseline_cpu))
    auto = _point_of(search, result.baseline_auto_fit)
    if auto is not None:
        yield _against_auto_fit(search, winner, auto)


def explain_next_best(search: Search, winner: Point) -> Iterator[Reason]:
    """Name what measurement does not tell from the answer, by the knobs in which it differs."""
    rival = undecided_rival(search.points().values(), winner)
    if rival is None:
        return
    gap = difference(winner, rival).median
    if gap < NEAR_FRAC:
        changes = _changes(winner.settings, rival.settings)
        yield reason("not_separated", difference_pct=round(100 * gap, 1), changes=changes)


def _against_cpu(search: Search, winner: Point, cpu: Point | None) -> Iterator[Reason]:
    at = winner.settings
    if cpu is None:
        return
    if not at.n_gpu_layers and not at.devices:
        rivals = [p for p in search.clean() if p.settings.n_gpu_layers]
        if rivals and told_apart(winner, rivals[0]):
            yield reason("cpu_leads", **behind(winner, rivals[0]))
    elif told_apart(winner, cpu) and at.n_gpu_layers:
        yield reason("gpu_gain", factor=round(cpu.request_s / winner.request_s, 2))
    elif told_apart(winner, cpu):
        yield reason("prompt_on_gpu", **behind(winner, cpu))


def _against_auto_fit(search: Search, winner: Point, auto: Point) -> Reason:
    gain, layers = gain_pct(winner, auto), auto.settings.n_gpu_layers
    if round(gain) > 0:
        code = "auto_fit_gain" if told_apart(winner, auto) else "auto_fit_close"
        return reason(code, n_gpu_layers=layers, **behind(winner, auto))
    if round(gain) < 0 and not search.may_win(auto.settings):
        return reason("auto_fit_barred", n_gpu_layers=layers, gain_pct=gain_pct(auto, winner))
    return reason("auto_fit_equal", n_gpu_layers=layers)


def _point_of(search: Search, shown: Recommended | None) -> Point | None:
    """Return the point behind ``shown``, if it has a speed."""
    if shown is None:
        return None
    points = (p for p in search.points().values() if shown.trial in p.indices)
    return next((p for p in points if p.request is not None), None)


def _changes(ours: Settings, other: Settings) -> str:
    """Return what ``other`` has instead: ``"n_ubatch 256, flash_attn off"``."""
    names = [s.name for s in SETTINGS if getattr(ours, s.name) != getattr(other, s.name)]
    return ", ".join(f"{n} {_shown(getattr(other, n))}" for n in names)


def _shown(value: object) -> str:
    return (" + ".join(value) or "CPU") if isinstance(value, tuple) else str(value) or "—"
