"""Heat and power in the window: mode, state line, change log, restore, what is left pending."""

from pytestqt.qtbot import QtBot

from app.domain.errors import EnvironmentProblem
from app.power.changes import Pending
from app.power.records import Mode
from app.session.power_views import EnergyReport
from tests.fakes.session import FakeSession
from views.main_window import MainWindow
from views.power.panel import PowerPanel

LEFT = Pending(key="GPU-1", pci_id="0000:01:00.0", boot_id="b", since_utc="2026-01-12T18:21:00Z")


def panel(window: MainWindow, qtbot: QtBot) -> PowerPanel:
    """Return the panel, once it knows what was chosen."""
    found = window.dashboard.power
    qtbot.waitUntil(found.isEnabled)
    return found


def test_the_line_says_temperature_limit_action_and_reason(
    window: MainWindow, qtbot: QtBot
) -> None:
    """One sentence holds what the governor sees and does."""
    text = panel(window, qtbot).line.text()
    assert "RTX 3090: 74 of 74 °C, limit 280 W, at work 100 %, balanced." in text
    assert "3.10\u00a0°C too warm (now or soon): one step cooler." in text


def test_nothing_to_govern_is_said(window: MainWindow, session: FakeSession, qtbot: QtBot) -> None:
    """Without a model on a GPU the line is not just empty."""
    session.power.devices = ()
    found = panel(window, qtbot)
    found.line.refresh()
    assert "nothing to govern" in found.line.text()


def test_a_mode_is_chosen_beside_the_window(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """What the user picks reaches the session; picking the same again does not."""
    found = panel(window, qtbot)
    for _ in range(2):
        found.mode.setCurrentIndex(found.mode.findData(Mode.QUIET))
        found.mode.activated.emit(found.mode.currentIndex())
        qtbot.waitUntil(lambda: not window.jobs.running("power"))
    assert [c.mode for c in session.power.chosen] == [Mode.QUIET]


def test_target_price_and_rights_are_chosen_in_the_details(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """The lowest value of each field means that there is none."""
    found = panel(window, qtbot)
    found.target.setValue(65.0)
    found.price.setValue(0.3)
    found.helper.click()
    qtbot.waitUntil(lambda: bool(session.power.chosen))
    choice = session.power.chosen[-1]
    assert (choice.target_c, choice.price_per_kwh, choice.use_helper) == (65.0, 0.3, True)
    found.target.setValue(found.target.minimum())
    found.target.editingFinished.emit()
    qtbot.waitUntil(lambda: session.power.chosen[-1].target_c is None)


def test_one_click_puts_everything_back_and_the_next_resumes(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """The button says what it will do next."""
    found = panel(window, qtbot)
    found.restore.click()
    qtbot.waitUntil(lambda: "Resume" in found.restore.text())
    assert session.power.is_paused
    assert "until you resume" in found.line.text()
    found.restore.click()
    qtbot.waitUntil(lambda: "Put Everything Back" in found.restore.text())
    assert not session.power.is_paused


def test_the_log_shows_before_and_after(window: MainWindow, qtbot: QtBot) -> None:
    """The newest change stands first, with what was read on either side of it."""
    found = panel(window, qtbot)
    found._more.click()
    qtbot.waitUntil(lambda: bool(found.table.rows.rows))
    newest, older = found.table.rows.rows
    assert newest[1:] == (
        "2026-01-12 19:00:00", "power limit", "restored", "put back", "—", "350",
    )  # fmt: skip
    assert older[4:] == ("280", "350", "280")


def test_what_an_earlier_run_left_is_offered_and_put_back(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """A banner says what is left; its button restores, and says when that failed."""
    found = panel(window, qtbot)
    session.power.left = (LEFT,)
    found.attach(session.power, window.jobs)
    qtbot.waitUntil(lambda: "0000:01:00.0" in found.banner.text)
    session.power.problem = EnvironmentProblem("helper_dismissed", "No password.", "Again.")
    found.banner.action_requested.emit()
    qtbot.waitUntil(lambda: "No password." in found.banner.text)
    session.power.problem = None
    found.banner.action_requested.emit()
    qtbot.waitUntil(lambda: "as it was found" in found.banner.text)


def test_the_chat_shows_the_same_line_with_its_energy(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """Below an answer: joules per token, watt-hours, and the price at the user's tariff."""
    qtbot.waitUntil(lambda: window.late is not None)
    assert window.late is not None
    session.power.conversation = EnergyReport(
        n_tok=100, joules=800.0, j_per_tok=8.0, watt_hours=0.222, cost_per_1000=0.00067,
        currency="EUR", source="counter",
    )  # fmt: skip
    window.open_page("chat")
    line = window.late.chat.power
    line.refresh()
    assert "8.00 J per token, 0.222 Wh in this conversation" in line.text()
    assert "EUR per 1,000 tokens" in line.text()


def test_the_panel_lives_on_in_another_language(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """Pages built anew must know the session that is open already."""
    before = window.dashboard
    window.rebuild()
    qtbot.waitUntil(lambda: window.dashboard is not before and window.is_ready)
    qtbot.waitUntil(window.dashboard.power.isEnabled)
    assert "74 of 74 °C" in window.dashboard.power.line.text()
