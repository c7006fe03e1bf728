"""Power limits after a search: measured on request, stoppable, and one click from use."""

from pytestqt.qtbot import QtBot

from app.domain.sweep import Goal, SweepRequest
from tests.fakes import window_data as data
from tests.fakes.session import FakeSession
from views.main_window import MainWindow
from views.power.caps_card import CapsCard


def card(window: MainWindow, qtbot: QtBot) -> CapsCard:
    """Return the card as it stands after a search for a quiet machine."""
    qtbot.waitUntil(lambda: window.late is not None)
    assert window.late is not None
    wizard = window.late.wizard
    window.open_page("tune")
    wizard._model, wizard._request = data.SPEC.path, SweepRequest(goal=Goal.QUIET)
    wizard._on_finished(data.result())
    return wizard.caps


def test_only_a_quiet_search_offers_it(window: MainWindow, qtbot: QtBot) -> None:
    """Measuring limits takes a quarter of an hour: nobody else is asked."""
    found = card(window, qtbot)
    assert not found.isHidden()
    assert window.late is not None
    window.late.wizard._request = SweepRequest(goal=Goal.CHAT)
    window.late.wizard._on_finished(data.result())
    assert found.isHidden()


def test_limits_are_shown_and_the_best_one_is_used(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """The table holds a row per limit; Use makes chats keep to the recommended one."""
    found = card(window, qtbot)
    assert window.late is not None
    with qtbot.waitSignal(window.late.wizard.search_started):  # the chat's model is unloaded
        found.start.click()
    qtbot.waitUntil(lambda: len(found.table.rows.rows) == 2)
    qtbot.waitUntil(lambda: not window.jobs.running("caps"))
    assert found.table.rows.rows[1][0] == "280 W"
    assert "280 W is the best" in found.text.text()
    found.use.click()
    qtbot.waitUntil(lambda: bool(session.power.chosen))
    choice = session.power.chosen[-1]
    assert (choice.caps_w, choice.use_helper) == ({"GPU-1": 280.0}, True)


def test_stop_keeps_what_was_measured(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """The button stops; the limit measured by then is shown."""
    found = card(window, qtbot)
    session.gate.clear()
    found.start.click()
    qtbot.waitUntil(lambda: "350 W (1 of 2)" in found.text.text())
    assert found.start.text().strip() == "Stop"
    found.start.click()
    qtbot.waitUntil(lambda: not window.jobs.running("caps"))
    assert len(found.table.rows.rows) == 1
    session.gate.set()
