"""What a window must survive: odd paths, a full or read-only disk, a missing font, a second one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent, QFont
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.fakes.gui_guard import GuiGuard
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.late_pages import LatePages
from views.main_window import MainWindow
from views.widgets import Kit

LONG = "/modelle/" + "sehr langer ordner ü 模型/" * 12 + "model.gguf"


@pytest.fixture
def other_font(qapp: QApplication) -> Iterator[None]:
    """Ask for a font that is nowhere."""
    before = QFont(qapp.font())
    qapp.setFont(QFont("No Such Family At All", 10))
    yield
    qapp.setFont(before)


@pytest.mark.parametrize("path", [LONG, "/a b/c.gguf", "/emoji 🦙/m.GGUF", "C:\\Modelle\\ü.gguf"])
def test_odd_paths_go_through_unchanged(
    window: MainWindow, late: LatePages, session: FakeSession, qtbot: QtBot, path: str
) -> None:
    """A path of 300 characters, with spaces or any letters must be searched as it is."""
    window.open_page("tune")
    width = window.width()
    late.wizard.start_quick(path)
    qtbot.waitUntil(lambda: late.wizard.step == "result" and not window.jobs.running())
    assert session.requests[0][0] == path
    assert window.width() == width
    assert window.state.recent == (path,)
    late.wizard._again.click()
    assert late.wizard.model_step.minimumSizeHint().width() < 700


def test_long_path_can_be_dropped(late: LatePages, window: MainWindow, qtbot: QtBot) -> None:
    """Dropping must take the whole path."""
    window.open_page("tune")
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(LONG)])
    action, button = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    event = QDropEvent(QPoint(5, 5), action, mime, button, Qt.KeyboardModifier.NoModifier)
    with qtbot.waitSignal(late.wizard.model_step.model_chosen) as chosen:
        late.wizard.model_step.dropEvent(event)
    assert chosen.args == [LONG]
    qtbot.waitUntil(lambda: late.wizard.step == "goal" and not window.jobs.running())


def test_two_windows_live_side_by_side(open_window: OpenWindow, qtbot: QtBot) -> None:
    """Closing one must leave the other, its jobs and its readings alone."""
    first, second = open_window(FakeSession()), open_window(FakeSession())
    first.finish()
    qtbot.waitUntil(lambda: not first.isVisible())
    assert second.isVisible()
    assert second.late is not None
    second.open_page("tune")
    second.late.wizard.start_quick("demo")
    late = second.late
    qtbot.waitUntil(lambda: late.wizard.step == "result" and not second.jobs.running())


def test_missing_font_costs_nothing(
    other_font: None, open_window: OpenWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """Without the wanted font another one must be used, and every page must fit."""
    window = open_window(session)
    for entry in window.entries:
        window.open_page(entry.key)
    qtbot.waitUntil(lambda: not window.jobs.running())
    assert window.fontMetrics().height() > 5


def test_settings_on_a_read_only_disk_count_for_now(
    window: MainWindow,
    tmp_path: Path,
    guard: GuiGuard,
    monkeypatch: pytest.MonkeyPatch,
    qtbot: QtBot,
) -> None:
    """Where nothing can be written the change must still count, and the window must say so."""
    with guard.paused():
        (tmp_path / "file").touch()
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "file" / "home"))
    window._kit.options.change(theme="dark")
    qtbot.waitUntil(lambda: "cannot be written" in window.dashboard._banner.text)
    theme = window._kit.theme
    qtbot.waitUntil(lambda: theme.is_dark and not theme._slices.is_busy)
    window.finish()
    qtbot.waitUntil(lambda: not window.isVisible())


def test_window_fits_a_small_screen_again(window: MainWindow, kit: Kit, qtbot: QtBot) -> None:
    """A place from a screen that is gone must not leave the window out of sight."""
    window.move(5000, 5000)
    geometry = window.saveGeometry()
    assert window.restoreGeometry(geometry)
    screen = window.screen().availableGeometry()
    qtbot.waitUntil(lambda: screen.intersects(window.frameGeometry()))


def test_broken_preferences_are_named_once(
    tmp_path: Path, open_window: OpenWindow, kit: Kit, session: FakeSession, qtbot: QtBot
) -> None:
    """A damaged settings file must be said on the first page, with where it is kept."""
    kit.options.notice = str(tmp_path / "preferences.json.broken")
    window = open_window(session)
    assert "preferences.json.broken" in window.dashboard._banner.text
