"""The plot of a search: its words and its table say what it shows."""

import pytest
from pytestqt.qtbot import QtBot

from tests.fakes import window_data as data
from views.colors import Scheme
from views.plots.context_plot import ContextPlot
from views.plots.sweep_plot import SweepPlot
from views.widgets import Kit


def test_summary_and_table_say_the_same(kit: Kit, qtbot: QtBot) -> None:
    """Who cannot see the plot must get its finding as a sentence and its points as rows."""
    plot = SweepPlot(kit)
    qtbot.addWidget(plot)
    plot.show_trials(data.TRIALS, data.result())
    plot.show()
    qtbot.waitUntil(lambda: not plot._is_stale)
    assert "GPU layers 28" in plot.summary
    assert plot._axes.widget.accessibleDescription() == plot.summary
    rows = plot.table.rows.rows
    assert len(rows) == len(data.TRIALS)
    assert rows[5][2:] == ("out of memory", "—", "—")


def test_no_trial_yet(kit: Kit, qtbot: QtBot) -> None:
    """Before the first trial the plot must say so and not fail."""
    plot = SweepPlot(kit)
    qtbot.addWidget(plot)
    plot.show_trials(())
    plot.show()
    qtbot.waitUntil(lambda: not plot._is_stale)
    assert plot.summary == "No speed measured yet."


def test_chosen_axis_stays_while_trials_arrive(kit: Kit, qtbot: QtBot) -> None:
    """A new trial must not take the axis away that the user chose."""
    plot = SweepPlot(kit)
    qtbot.addWidget(plot)
    plot.show_trials(data.TRIALS[:7])
    plot.show()
    qtbot.waitUntil(lambda: not plot._is_stale)
    plot._knob.setCurrentIndex(plot._knob.findData("trial"))
    plot._knob.activated.emit(plot._knob.currentIndex())
    plot.show_trials(data.TRIALS[:8])
    qtbot.waitUntil(lambda: len(plot.table.rows.rows) == 8)
    assert plot.knob == "trial"


def test_look_change_redraws(kit: Kit, qtbot: QtBot) -> None:
    """A plot must take the colours of the new look; pyqtgraph ignores the palette."""
    plot = SweepPlot(kit)
    qtbot.addWidget(plot)
    plot.show_trials(data.TRIALS, data.result())
    plot.show()
    qtbot.waitUntil(lambda: not plot._is_stale)
    kit.theme.choose(Scheme.DARK)
    brush = plot._axes.widget.backgroundBrush
    qtbot.waitUntil(lambda: brush().color().name() == kit.theme.colors.surface)


def test_context_plot_names_both_ends(kit: Kit, qtbot: QtBot) -> None:
    """The sentence must give speed and depth at both ends."""
    plot = ContextPlot(kit)
    qtbot.addWidget(plot)
    plot.show_result(data.result(), 20.0)
    assert "3,840 tokens" in plot.summary
    assert len(plot.table.rows.rows) == 3


@pytest.mark.parametrize(("n_trials", "right"), [(0, 1.5), (1, 1.5)])
def test_few_trials_keep_a_sensible_axis(
    kit: Kit, qtbot: QtBot, n_trials: int, right: float
) -> None:
    """With no trial or one the axis must stand around the first trial."""
    plot = SweepPlot(kit)
    qtbot.addWidget(plot)
    plot.show_trials(data.TRIALS[:n_trials])
    plot.show()
    qtbot.waitUntil(lambda: not plot._is_stale)
    assert plot._axes.plot.viewRange()[0] == pytest.approx([0.5, right])


def test_key_names_the_knee(kit: Kit, qtbot: QtBot) -> None:
    """The mark of the knee must be explained, and only where there is one."""
    plot = SweepPlot(kit)
    qtbot.addWidget(plot)
    plot.show_trials(data.TRIALS, data.result())
    plot.show()
    qtbot.waitUntil(lambda: "knee" in plot._key.text())
    plot._measure.setCurrentIndex(plot._measure.findData("decode"))
    plot.show_trials(data.TRIALS[:4])
    qtbot.waitUntil(lambda: "knee" not in plot._key.text())
