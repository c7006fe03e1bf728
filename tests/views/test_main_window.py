"""The window: pages, keys, an orderly end."""

from datetime import UTC, datetime

import msgspec
from PySide6.QtCore import QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.domain.errors import ErrorInfo
from app.domain.events import GenerationFinished
from app.domain.machine import DriverReset, WindowsSettings
from app.store.preferences import load_preferences
from tests.fakes.gui_guard import GuiGuard
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.late_pages import LatePages
from views.main_window import MainWindow


def test_every_page_has_its_key(window: MainWindow, qtbot: QtBot) -> None:
    """Ctrl+1 to Ctrl+5 must show the pages in the order of the sidebar."""
    keys = (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3, Qt.Key.Key_4, Qt.Key.Key_5)
    for key, entry in zip(keys, window.entries, strict=True):
        QTest.keyClick(window, key, Qt.KeyboardModifier.ControlModifier)
        page = window._page(entry.key)
        assert page is not None
        qtbot.waitUntil(page.isVisible)
    qtbot.waitUntil(lambda: not window.jobs.running())


def test_smallest_size(window: MainWindow) -> None:
    """The window must not get smaller than 900 by 600, unless the screen is."""
    screen = window.screen().availableSize()
    assert window.minimumSize() == QSize(900, 600).boundedTo(screen)


def test_page_asked_for_too_early_shows_when_it_is_there(
    open_window: OpenWindow, qtbot: QtBot
) -> None:
    """A press on a page that is still being built must not be lost."""
    window = open_window(FakeSession())
    window._late = None
    window.open_page("chat")
    assert window._wanted == "chat"
    window._stack.setCurrentWidget(window.dashboard)
    import views.late_pages

    window._on_warmed_up(views.late_pages)
    qtbot.waitUntil(lambda: window.late is not None)
    assert window.late is not None
    assert window.late.chat.isVisible()
    qtbot.waitUntil(lambda: not window.jobs.running())


def test_closing_ends_the_session_and_remembers(
    window: MainWindow, session: FakeSession, qtbot: QtBot, guard: GuiGuard
) -> None:
    """Closing must release the engine and store the look; the file is written on a thread."""
    window._kit.options.change(theme="dark")
    window.close()
    qtbot.waitUntil(lambda: not window.isVisible())
    assert session.is_closed
    with guard.paused():
        assert load_preferences()[0].theme == "dark"


def test_closing_in_a_search_asks_and_keeps(
    window: MainWindow, late: LatePages, session: FakeSession, qtbot: QtBot
) -> None:
    """Closing in the middle must ask; staying goes on, closing stops and ends."""
    session.gate.clear()
    late.wizard.start_quick("demo")
    qtbot.waitUntil(lambda: len(late.wizard.run_step._trials) == session.hold_at)
    window.close()
    assert window.isVisible()
    question(window, "Keep Searching").click()
    assert late.wizard.runner.is_running
    window.close()
    question(window, "Stop and Close").click()
    qtbot.waitUntil(lambda: not window.isVisible())
    assert session.is_closed
    assert late.wizard.step == "result"


def test_shortcut_list_names_the_pages(window: MainWindow, qtbot: QtBot) -> None:
    """Help must list every shortcut."""
    QTest.keyClick(window, Qt.Key.Key_F1)
    box = window.findChild(QMessageBox)
    assert isinstance(box, QMessageBox)
    for text in ("Ctrl+1", "Find best settings", "Ctrl+O", "Esc"):
        assert text in box.text()
    box.close()


def test_sidebar_shows_icons_only_where_text_is_large(window: MainWindow, qtbot: QtBot) -> None:
    """With large text the sidebar must give its room to the page."""
    font = window.font()
    font.setPointSizeF(font.pointSizeF() * 2)
    window.setFont(font)
    window.resize(901, 600)
    qtbot.waitUntil(lambda: window.sidebar.width() < 120)


def test_advice_looks_at_the_newest_readings(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """A card that throttles now must be spoken of when the page is opened."""
    telemetry = session.fake_telemetry
    hot = msgspec.structs.replace(telemetry.samples[-1], throttle=("hw_thermal",), temp_c=91.0)
    telemetry.push(hot)
    window.open_page("advice")
    qtbot.waitUntil(window.on_demand.pages["advice"].isVisible)
    said = [label.text() for label in window.on_demand.pages["advice"].findChildren(QLabel)]
    assert any("because of its temperature" in text for text in said)


def question(window: MainWindow, text: str) -> QPushButton:
    """Return a button of the open question."""
    boxes = [b for b in window.findChildren(QMessageBox) if b.isVisible()]
    return next(b for box in boxes for b in box.findChildren(QPushButton) if b.text() == text)


def test_driver_reset_under_a_chat_reaches_the_advice(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """After an answer broke off, what the session knows by then is shown."""
    assert window.late is not None
    at = datetime.now(UTC).isoformat()
    log = (DriverReset(provider="nvlddmkm", event_id=153, time_utc=at),)
    host = msgspec.structs.replace(
        session.machine().host, os="windows", windows=WindowsSettings(resets=log)
    )
    session._machine = msgspec.structs.replace(session.machine(), host=host)
    error = ErrorInfo(code="driver_reset", message="It was reset.", hint="Again.")
    window.late.chat.scene.show_event(GenerationFinished(reason="error", n_prompt=0, error=error))
    window.open_page("advice")
    qtbot.waitUntil(
        lambda: any("nvlddmkm 153" in label.text() for label in window.findChildren(QLabel))
    )
