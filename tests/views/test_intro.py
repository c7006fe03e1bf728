"""The first start: short, skippable, without network."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.store.preferences import Preferences
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.intro import IntroPage
from views.main_window import MainWindow
from views.options import Options
from views.widgets import Kit


def first(open_window: OpenWindow, kit: Kit, session: FakeSession) -> tuple[MainWindow, IntroPage]:
    """Open a window as on the first start."""
    kit.options = Options(Preferences())
    window = open_window(session)
    page = window.on_demand.pages["intro"]
    assert isinstance(page, IntroPage)
    return window, page


@pytest.mark.parametrize("go", [Qt.Key.Key_Space, Qt.Key.Key_Return])
def test_three_screens_by_keyboard(
    open_window: OpenWindow, kit: Kit, session: FakeSession, go: Qt.Key, qtbot: QtBot
) -> None:
    """At most three screens; one key alone must lead through them to the wizard."""
    window, page = first(open_window, kit, session)
    assert page.isVisible()
    assert page._stack.count() <= 3
    for _ in range(page._stack.count()):
        focus = QApplication.focusWidget()
        assert focus is page.next
        QTest.keyClick(focus, go)
    assert window.late is not None
    assert window.late.wizard.isVisible()
    assert kit.options.value.is_introduced
    qtbot.waitUntil(lambda: not window.jobs.running())


def test_first_press_skips_it_for_good(
    open_window: OpenWindow, kit: Kit, session: FakeSession, qtbot: QtBot
) -> None:
    """Skip must lead to the dashboard and not show the screens again."""
    window, page = first(open_window, kit, session)
    page.skip.click()
    assert window.dashboard.isVisible()
    assert kit.options.value.is_introduced
    qtbot.waitUntil(lambda: not window.jobs.running())


def test_machine_is_named(
    open_window: OpenWindow, kit: Kit, session: FakeSession, qtbot: QtBot
) -> None:
    """What was found must be on the second screen."""
    _, page = first(open_window, kit, session)
    page.next.click()
    assert "RTX 4070" in page._found.text()
    assert "Ryzen" in page._found.text()
