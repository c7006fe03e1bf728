"""The heavy moments of a window's life, watched by the guard from its first event on."""

import gc

import msgspec
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.domain.machine import Machine
from tests.fakes import window_data as data
from tests.fakes.gui_guard import GuiGuard
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.language import Language, Translations
from views.late_pages import LatePages
from views.main_window import MainWindow
from views.options import Options
from views.state import WindowState
from views.widgets import Kit


def test_start_holds_the_window_nowhere(
    kit: Kit, session: FakeSession, guard: GuiGuard, qtbot: QtBot
) -> None:
    """From the first event to the last page built, no turn may be long."""
    window = MainWindow(kit, lambda: session, WindowState())
    window.show()
    guard.is_armed = True
    window.start()
    qtbot.waitUntil(lambda: window.is_ready and not window.jobs.running())
    window.finish()
    qtbot.waitUntil(lambda: not window.isVisible() and not window.jobs.running())
    guard.is_armed = False
    window.deleteLater()
    qtbot.wait(1)


def test_look_switch_holds_the_window_nowhere(
    window: MainWindow, late: LatePages, qtbot: QtBot
) -> None:
    """With every page built and a result on screen, dark and high contrast must come in slices."""
    late.wizard.start_quick("demo")
    window.open_page("tune")
    qtbot.waitUntil(lambda: late.wizard.step == "result" and not window.jobs.running())
    theme = window._kit.theme
    for change in ({"theme": "dark"}, {"contrast": "high"}, {"theme": "light"}):
        with qtbot.waitSignal(theme.changed):
            window._kit.options.change(**change)
        qtbot.waitUntil(lambda: theme.is_settled and window._kit.icons.is_settled)
    assert window.updatesEnabled()
    assert not window.jobs.running("search")


def test_language_switch_builds_the_pages_anew(
    kit: Kit, session: FakeSession, guard: GuiGuard, qtbot: QtBot
) -> None:
    """Another language must be on every page at once, without a restart and without a hold."""
    app = QApplication.instance()
    assert app is not None
    translations = Translations(app, Language.ENGLISH)
    kit.options = Options()
    window = MainWindow(kit, lambda: session, WindowState(), translations)
    window.pages_built.connect(gc.freeze)  # as the program does
    window.show()
    window.start()
    qtbot.waitUntil(lambda: window.is_ready and not window.jobs.running())
    window.open_page("settings")
    guard.is_armed = True
    kit.options.change(language="zh")
    qtbot.waitUntil(lambda: window.entries[0].label == "仪表盘")
    qtbot.waitUntil(lambda: window.is_ready and not window.jobs.running())
    assert window._wanted == "settings"
    kit.options.change(language="en")
    qtbot.waitUntil(lambda: window.entries[0].label == "Dashboard")
    qtbot.waitUntil(lambda: window.is_ready and not window.jobs.running())
    window.finish()
    qtbot.waitUntil(lambda: not window.isVisible() and not window.jobs.running())
    guard.is_armed = False
    window.deleteLater()
    qtbot.wait(1)


def test_eight_cards_follow_a_resize(
    open_window: OpenWindow, guard: GuiGuard, qtbot: QtBot
) -> None:
    """Dragging the window's edge with eight GPUs on screen must stay smooth."""
    gpus = tuple(msgspec.structs.replace(data.DISCRETE, key=f"GPU-{i}") for i in range(8))
    machine = Machine(host=data.HOST, gpus=gpus, engine=data.MACHINE.engine)
    window = open_window(FakeSession(machine))
    guard.is_armed = True
    for width in range(900, 1500, 60):
        window.resize(width, 600 + width // 10)
        qtbot.wait(1)
    for size in ((1500, 950), (900, 600)):
        window.resize(*size)
        qtbot.wait(1)
    assert len(window.dashboard._cards_shown) == 9
