"""Trials as points: which axis, which mark, which line."""

from app.domain.outcome import Outcome
from app.domain.trial import Rate
from tests.fakes import window_data as data
from views.plots.sweep_data import (
    PlotPoint,
    best_index,
    best_line,
    context_points,
    points,
    predicted_band,
    usual_depth,
    varied_knobs,
)


def test_axis_is_the_knob_with_most_values() -> None:
    """The knob the search varied most must be shown first, the trial number last."""
    assert varied_knobs(data.TRIALS) == ("n_gpu_layers", "n_ubatch", "trial")


def test_single_trial_is_shown_by_its_number() -> None:
    """Where nothing varies there must still be an axis."""
    assert varied_knobs(data.TRIALS[:1]) == ("trial",)
    assert varied_knobs(()) == ("trial",)


def test_other_depths_do_not_mix_in() -> None:
    """Speeds at another depth must not be drawn among those of the goal."""
    assert usual_depth(data.TRIALS) == 2048
    depths = {
        data.TRIALS[p.index].request.workload.depth for p in points(data.TRIALS, "trial", "decode")
    }
    assert depths == {2048}


def test_each_outcome_has_its_mark() -> None:
    """Spilled and failed trials must be told apart from measured ones."""
    kinds = {p.index: p.kind for p in points(data.TRIALS, "n_gpu_layers", "decode")}
    assert kinds[0] == "measured"
    assert kinds[1] == "spilled"
    assert kinds[5] == "failed"


def test_cancelled_trial_is_left_out() -> None:
    """A trial the user stopped says nothing and must not look like a failure."""
    stopped = data.trial(1, data.settings(5), None, outcome=Outcome.CANCELLED)
    assert points((stopped,), "trial", "decode") == ()


def test_line_takes_the_best_and_no_spilled_point() -> None:
    """The line must join the best measured speeds; a spilled one can never win."""
    line = best_line(points(data.TRIALS, "n_gpu_layers", "decode"))
    assert [x for x, _ in line] == [0, 14, 24, 25, 27, 28]
    assert best_index(data.TRIALS) == 0


def test_context_points_are_ordered() -> None:
    """Speed by context must go from shallow to deep."""
    assert [x for x, _ in context_points(data.result())] == [0, 2048, 3840]


def test_band_is_exact_where_measured_and_bends_between() -> None:
    """Seconds per token are linear in layers, so the middle lies below the straight line."""
    found = [
        PlotPoint(index=i, x=x, speed=Rate(median=y, low=y, high=y), kind="measured")
        for i, (x, y) in enumerate([(0.0, 10.0), (10.0, 40.0)])
    ]
    band = {x: (low, high) for x, low, high in predicted_band(found)}
    assert set(band) == {float(n) for n in range(11)}
    assert band[0.0] == (10.0, 10.0)
    assert band[10.0] == (40.0, 40.0)
    low, high = band[5.0]
    assert low < 16.0 < high < 25.0
    assert predicted_band(found[:1]) == ((0.0, 10.0, 10.0),)
