"""What a screen reader would find, walked through QAccessible (works without a screen)."""

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QAccessible, QAccessibleInterface
from pytestqt.qtbot import QtBot

from tests.fakes.session import FakeSession
from views.late_pages import LatePages
from views.main_window import MainWindow

ROLE = QAccessible.Role
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


@pytest.mark.parametrize("key", ["dashboard", "tune", "chat", "results", "advice"])
def test_everything_on_a_page_has_a_name(window: MainWindow, qtbot: QtBot, key: str) -> None:
    """No control may be read as just "button"."""
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
