"""What a screen reader would find, walked through QAccessible (works without a screen)."""

from collections.abc import Iterator
from functools import partial

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QFont
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from tests.fakes.gui_guard import GuiGuard
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.language import Language, Translations
from views.late_pages import LatePages
from views.main_window import MainWindow
from views.plots.live_strip import LiveStrip
from views.plots.twin import PlotTwin
from views.widgets import Kit

ROLE = QAccessible.Role
PAGES = ("dashboard", "tune", "chat", "results", "advice", "settings", "intro", "gallery")
INTERACTIVE = {
    ROLE.Button, ROLE.CheckBox, ROLE.RadioButton, ROLE.ComboBox, ROLE.Slider, ROLE.SpinBox,
    ROLE.EditableText, ROLE.Table, ROLE.List, ROLE.ProgressBar, ROLE.MenuItem, ROLE.ButtonMenu,
}  # fmt: skip


def walk(node: QAccessibleInterface, depth: int = 0) -> Iterator[QAccessibleInterface]:
    """Yield every visible element below ``node``."""
    yield node
    role = node.role()
    if depth > 30 or role in (ROLE.Table, ROLE.ComboBox, ROLE.SpinBox):
        return  # cells have their text, and parts of a control are read with it
    for index in range(node.childCount()):
        child = node.child(index)
        if child is not None and child.isValid() and not child.state().invisible:
            yield from walk(child, depth + 1)


def nameless(window: MainWindow) -> list[str]:
    """Return the interactive elements on screen that have no name."""
    root = QAccessible.queryAccessibleInterface(window)
    return [
        f"{node.role().name} of {type(node.object()).__name__}"
        for node in walk(root)
        if node.role() in INTERACTIVE
        and not node.text(QAccessible.Text.Name).strip()
        and node.rect().isValid()
    ]


@pytest.mark.parametrize("key", PAGES)
def test_everything_on_a_page_has_a_name(
    window: MainWindow, guard: GuiGuard, qtbot: QtBot, key: str
) -> None:
    """No control may be read as just "button"."""
    guard.is_armed = key != "gallery"  # which is for developers, and built at once
    window.open_page(key)
    qtbot.waitUntil(lambda: not window.jobs.running())
    assert nameless(window) == []


def test_every_step_of_the_wizard_has_names(
    window: MainWindow, late: LatePages, session: FakeSession, qtbot: QtBot
) -> None:
    """The same for each step, and the step itself must be named."""
    window.open_page("tune")
    wizard = late.wizard
    wizard.choose_model("x")
    qtbot.waitUntil(lambda: wizard.step == "goal" and bool(wizard.goal_step.estimate._bars))
    assert nameless(window) == []
    assert wizard.line.accessibleName() == "Step 2 of 5: Goal"
    session.gate.clear()
    wizard.goal_step.next.click()
    qtbot.waitUntil(wizard.plan_step.start.isEnabled)
    assert nameless(window) == []
    wizard.plan_step.start.click()
    qtbot.waitUntil(lambda: len(wizard.run_step._trials) == session.hold_at)
    assert nameless(window) == []
    session.gate.set()
    qtbot.waitUntil(lambda: wizard.step == "result")
    assert nameless(window) == []


def test_walk_would_find_a_nameless_button(window: MainWindow) -> None:
    """The walk itself must be able to fail."""
    window.dashboard._tune.setText("")
    window.dashboard._tune.setAccessibleName("")
    assert nameless(window) != []


def test_conversation_is_readable(window: MainWindow, late: LatePages, qtbot: QtBot) -> None:
    """Messages and their buttons must have names."""
    window.open_page("chat")
    late.chat.send("hello")
    qtbot.waitUntil(lambda: not late.chat.scene.is_answering)
    for panel in (late.chat.with_history, late.chat.with_setup, late.chat.with_server):
        panel.setChecked(True)
    qtbot.waitUntil(lambda: all(job.kind == "chat" for job in window.jobs.running()))
    assert nameless(window) == []


def has_one_bar(page: QWidget) -> bool:
    """Whether ``page`` has no scroll bar beside another one."""
    areas = page.findChildren(QScrollArea)
    return sum(a.isVisible() and a.verticalScrollBar().maximum() > 0 for a in areas) <= 1


def is_told(plot: PlotTwin) -> bool:
    """Whether a plot has its sentence and its rows."""
    return bool(plot.summary and plot.table.rows.rows)


def test_every_plot_has_a_table_and_a_sentence(
    window: MainWindow, late: LatePages, session: FakeSession, qtbot: QtBot
) -> None:
    """What a plot shows must be readable as rows and as one sentence; the same for strips."""
    window.open_page("tune")
    late.wizard.start_quick("demo")
    qtbot.waitUntil(lambda: late.wizard.step == "result" and not window.jobs.running())
    plots = late.wizard.result_step.findChildren(PlotTwin)
    assert len(plots) == 2
    for plot in plots:
        qtbot.waitUntil(partial(is_told, plot))
        assert plot._switch.accessibleName()
    window.open_page("dashboard")
    strips = window.dashboard.findChildren(LiveStrip)
    assert strips
    assert all(s.accessibleName() for s in strips if s.isVisible())
    assert all(c.table.accessibleName() for c in window.dashboard._cards_shown)


def test_keyboard_alone_completes_a_chat(window: MainWindow, late: LatePages, qtbot: QtBot) -> None:
    """Ctrl+N, typing and Return must bring an answer; nothing needs the mouse."""
    QTest.keyClick(window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert late.chat.isVisible()
    for _ in range(60):
        focus = QApplication.focusWidget()
        assert focus is not None
        if late.chat.composer.isAncestorOf(focus) and isinstance(focus, QPlainTextEdit):
            break
        QTest.keyClick(focus, Qt.Key.Key_Tab)
    else:
        pytest.fail("Tab never reaches the message")
    QTest.keyClicks(focus, "What is a KV cache?")
    QTest.keyClick(focus, Qt.Key.Key_Return)
    qtbot.waitUntil(late.chat.composer.stop.isVisible)
    qtbot.waitUntil(late.chat.composer.send.isVisible)


@pytest.mark.parametrize("factor", [1.0, 2.0])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_cut_off_in_the_smallest_window(
    qapp: QApplication,
    kit: Kit,
    session: FakeSession,
    open_window: OpenWindow,
    qtbot: QtBot,
    factor: float,
    language: str,
) -> None:
    """Pages that scroll up and down must fit sideways: at 900 pixels, also with text at 200 %."""
    font = QFont(qapp.font())
    large = QFont(font)
    large.setPointSizeF(font.pointSizeF() * factor)
    translations = Translations(qapp, Language(language))
    qapp.setFont(large)
    try:
        window = open_window(session)
        assert window.late is not None
        window.resize(900, 600)
        wide: list[str] = []

        def look(where: str) -> None:
            qtbot.waitUntil(lambda: not window.jobs.running())
            for area in window.findChildren(QScrollArea):
                content = area.widget()
                if area.isVisible() and content is not None:
                    room = area.viewport().width()
                    over = max(content.minimumSizeHint().width(), content.minimumWidth()) - room
                    if over > 0:
                        wide.append(f"{where}: {over} px too wide")

        for key in ("dashboard", "advice", "settings", "intro", "results", "chat"):
            window.open_page(key)
            page = window._page(key)
            assert page is not None
            qtbot.waitUntil(page.isVisible)
            look(key)
            if key not in ("results", "chat"):  # areas of these scroll on their own
                qtbot.waitUntil(partial(has_one_bar, page))
        for panel in (window.late.chat.with_history, window.late.chat.with_setup):
            panel.setChecked(True)
            look(f"chat with {panel.accessibleName()}")
        wizard = window.late.wizard
        window.open_page("tune")
        wizard.choose_model("x")
        qtbot.waitUntil(lambda: wizard.step == "goal" and bool(wizard.goal_step.estimate._bars))
        look("goal")
        qtbot.waitUntil(partial(has_one_bar, wizard))
        wizard.goal_step.next.click()
        qtbot.waitUntil(wizard.plan_step.start.isEnabled)
        qtbot.waitUntil(partial(has_one_bar, wizard))
        wizard.plan_step.start.click()
        qtbot.waitUntil(lambda: wizard.step == "result" and not window.jobs.running())
        look("result")
        qtbot.waitUntil(partial(has_one_bar, wizard))
        assert not wide, " | ".join(wide)
        assert window.width() == 900
    finally:
        qapp.setFont(font)
        qapp.removeTranslator(translations._translators[language])
        QLocale.setDefault(QLocale.c())
