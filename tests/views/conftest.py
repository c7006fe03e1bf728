"""Fixtures of the window's tests: a guarded application, a fake session, no leaks."""

import gc
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["TZ"] = "UTC"  # times on screen are local ones

import pytest
import shiboken6
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.advice.text import catalogue
from tests.fakes.gui_guard import GuardedApplication, GuiGuard
from tests.fakes.session import FakeSession
from views.colors import Scheme
from views.icons import Icons
from views.late_pages import LatePages
from views.main_window import MainWindow
from views.options import Options
from views.state import WindowState
from views.theme import Theme
from views.widgets import Kit

_GUARD = GuiGuard()
PATIENCE_MS = 60_000
"""How long a test waits for what must come; only a test that fails waits that long."""

# Messages of the platform, not of our code; each with its reason.
QT_NOISE = (
    "This plugin does not support propagateSizeHints",  # the offscreen platform, at each show
    "This plugin does not support raise",  # the same, for dialogs
    # the tray icon's X11 code on a platform without a tray
    "QObject::connect: No such signal QPlatformNativeInterface::systemTrayWindowChanged",
)


@pytest.fixture(scope="session")
def qapp_cls() -> type[QApplication]:
    """Make pytest-qt build the application whose every event is timed."""
    return GuardedApplication


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    """Return pytest-qt's robot, patient enough for a machine that is busy with other things."""
    bot = QtBot(request)
    for wait in ("waitUntil", "waitSignal", "waitExposed"):
        setattr(bot, wait, partial(getattr(bot, wait), timeout=PATIENCE_MS))
    return bot


@pytest.fixture(autouse=True)
def home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test its own folders."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def no_qt_warnings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail on any warning of Qt."""
    log = request.getfixturevalue("qtlog")
    yield
    bad = [r.message for r in log.records if r.log_type_name in ("WARNING", "CRITICAL")]
    bad = [text for text in bad if not text.startswith(QT_NOISE)]
    assert not bad, f"Qt warned: {bad}"


@pytest.fixture(autouse=True)
def no_leaks(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail when a thread or a running timer outlives the test."""
    before = set(threading.enumerate())
    started: list[QTimer] = []
    start = QTimer.start

    def remember(timer: QTimer, *args: Any) -> None:
        started.append(timer)
        start(timer, *args)

    monkeypatch.setattr(QTimer, "start", remember)
    yield
    qapp.sendPostedEvents(None, 0)
    new = [thread for thread in threading.enumerate() if thread not in before]
    for thread in new:  # one that has said its last word may still need the core to end
        thread.join(PATIENCE_MS / 1000)
    alive = [thread.name for thread in new if thread.is_alive()]
    assert not alive, f"threads outlived the test: {alive}"
    running = [t for t in started if shiboken6.isValid(t) and t.isActive()]
    assert not running, f"timers outlived the test: {[t.parent() for t in running]}"


@pytest.fixture
def guard(qapp: GuardedApplication) -> Iterator[GuiGuard]:
    """Arm the guard on request; fails the test when the GUI thread was held or blocked."""
    _GUARD.faults.clear()
    qapp.guard = _GUARD
    yield _GUARD
    qapp.guard = None
    _GUARD.is_armed = False
    assert not _GUARD.faults, "\n".join(_GUARD.faults)


@pytest.fixture(scope="session", autouse=True)
def frozen_heap() -> None:
    """Take what pytest made from the garbage collector, as the program does with its own."""
    gc.freeze()


@pytest.fixture(scope="session")
def looks(qapp: QApplication) -> Kit:
    """Return look and icons, made once: applying a look to the application is slow."""
    theme = Theme(qapp, Scheme.LIGHT)
    return Kit(theme, Icons(theme))


@pytest.fixture
def kit(looks: Kit) -> Iterator[Kit]:
    """Return what widgets are built with, in the light look and with default preferences."""
    looks.theme.choose(Scheme.LIGHT)
    looks.options = Options()
    yield looks
    looks.theme._slices.finish()
    looks.icons._slices.finish()


@pytest.fixture
def theme(kit: Kit) -> Theme:
    """Return the light look."""
    return kit.theme


@pytest.fixture
def session() -> FakeSession:
    """Return a session that plays a made-up machine."""
    return FakeSession()


def is_gone(window: MainWindow) -> bool:
    """Whether a window is closed and nothing of it runs."""
    return not window.isVisible() and not window.jobs.running()


OpenWindow = Callable[[FakeSession], MainWindow]


@pytest.fixture
def open_window(qtbot: QtBot, kit: Kit) -> Iterator[OpenWindow]:
    """Return what opens a window on a session, ready to use; it is closed in the end."""
    opened: list[MainWindow] = []

    def open_it(session: FakeSession, state: WindowState | None = None) -> MainWindow:
        catalogue("en")
        window = MainWindow(kit, lambda: session, state or WindowState())
        # As the program does: a full round of the collector would count as ours.
        window.pages_built.connect(gc.freeze)
        opened.append(window)
        window.resize(900, 600)
        window.show()
        window.start()
        qtbot.waitUntil(lambda: window.is_ready and not window.jobs.running())
        # Keys reach an active window only.
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow)
        return window

    yield open_it
    for window in opened:
        if window.isVisible():
            window.finish()
        qtbot.waitUntil(partial(is_gone, window))
        window.deleteLater()
    qtbot.wait(1)


@pytest.fixture
def window(open_window: OpenWindow, session: FakeSession, guard: GuiGuard) -> MainWindow:
    """Return an open window whose GUI thread is watched from now on."""
    window = open_window(session)
    guard.is_armed = True
    return window


@pytest.fixture
def late(window: MainWindow) -> LatePages:
    """Return the wizard, chat and results pages of the window."""
    assert window.late is not None
    return window.late


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """Disarm the guard before pytest itself reads files to explain a failure."""
    if call.when == "call":
        _GUARD.is_armed = False
