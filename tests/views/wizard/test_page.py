"""The wizard: from a model to its settings, by mouse, by keyboard, in one click."""

import msgspec
import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.domain.errors import EnvironmentProblem
from app.domain.finding import Finding, Severity
from app.domain.sweep import BudgetName, Goal, PlannedStage, SweepRequest
from app.domain.units import format_tok_s
from app.session import ModelEntry
from tests.fakes import window_data as data
from tests.fakes.session import FakeSession
from views.late_pages import LatePages
from views.main_window import MainWindow
from views.widgets import Kit
from views.wizard.goal_step import GoalStep
from views.wizard.model_step import ModelStep
from views.wizard.page import WizardPage
from views.wizard.plan_step import PlanStep


@pytest.fixture
def wizard(window: MainWindow, late: LatePages, qtbot: QtBot) -> WizardPage:
    """Return the wizard, shown, with its list of models."""
    window.open_page("tune")
    page = late.wizard
    qtbot.waitUntil(lambda: len(page.model_step.table.rows.rows) > 1)
    return page


def test_one_click_needs_no_other_decision(
    wizard: WizardPage, session: FakeSession, qtbot: QtBot
) -> None:
    """One press must lead to a result with chat on the found settings at hand."""
    wizard.model_step.quick.click()
    qtbot.waitUntil(lambda: wizard.step == "result")
    assert session.requests == [("demo", SweepRequest())]
    assert wizard.result_step._numbers[0].text().endswith("tok/s")
    assert wizard.result_step.chat.isEnabled()


@pytest.mark.parametrize("go", [Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_keyboard_alone_completes_the_wizard(
    wizard: WizardPage, session: FakeSession, window: MainWindow, go: Qt.Key, qtbot: QtBot
) -> None:
    """Every step must be reachable with Tab and arrows, and passable with Space and Return."""

    def press(key: Qt.Key) -> None:
        focus = QApplication.focusWidget()
        assert focus is not None
        QTest.keyClick(focus, key)

    def tab_to(target: object) -> None:
        for _ in range(60):
            if QApplication.focusWidget() is target:
                return
            press(Qt.Key.Key_Tab)
        pytest.fail(f"Tab never reaches {target}")

    window.activateWindow()
    wizard.model_step.quick.setFocus()
    tab_to(wizard.model_step.table)
    press(Qt.Key.Key_Down)
    press(Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: wizard.step == "goal")
    tab_to(wizard.goal_step.goals._buttons[Goal.CHAT])
    press(Qt.Key.Key_Down)
    assert wizard.goal_step.goals.goal is Goal.DOCUMENTS
    tab_to(wizard.goal_step.constraints.context)
    press(Qt.Key.Key_Right)
    tab_to(wizard.goal_step.next)
    press(go)
    qtbot.waitUntil(wizard.plan_step.start.isEnabled)
    tab_to(wizard.plan_step.start)
    press(go)
    qtbot.waitUntil(lambda: wizard.step == "result")
    model, request = session.requests[0]
    assert model == data.SPEC.path
    assert request.goal is Goal.DOCUMENTS
    assert request.n_ctx_min == 16384
    assert QApplication.focusWidget() is wizard.result_step.chat


def test_nothing_runs_before_the_plan_is_accepted(
    wizard: WizardPage, window: MainWindow, qtbot: QtBot
) -> None:
    """The plan must be on screen while nothing is measured; Back must drop it."""
    wizard.choose_model("x")
    qtbot.waitUntil(lambda: wizard.step == "goal")
    wizard.goal_step.next.click()
    qtbot.waitUntil(wizard.plan_step.start.isEnabled)
    assert len(wizard.plan_step.table.rows.rows) == 5
    assert wizard.run_step._trials == []
    wizard.plan_step.back_requested.emit()
    qtbot.waitUntil(lambda: not window.jobs.running())
    assert wizard.step == "goal"
    assert not wizard.runner.is_running


def test_estimate_follows_the_slider(wizard: WizardPage, qtbot: QtBot) -> None:
    """Moving the context must change the estimate on screen."""
    wizard.choose_model("x")
    qtbot.waitUntil(lambda: bool(wizard.goal_step.estimate._bars))
    panel = wizard.goal_step.estimate
    qtbot.waitUntil(lambda: "29 of 29" in panel._text.text())
    wizard.goal_step.constraints.need_context(32768)
    qtbot.waitUntil(lambda: "24 of 29" in panel._text.text())


def test_bounds_become_the_request(wizard: WizardPage, qtbot: QtBot) -> None:
    """What the form shows must be what is asked."""
    form = wizard.goal_step.constraints
    form.floor.setValue(12.5)
    form.headroom.setValue(512)
    form.q8.setChecked(True)
    form.budget.setCurrentIndex(0)
    asked = form.request(Goal.CHAT)
    assert asked == SweepRequest(
        goal=Goal.CHAT, n_ctx_min=4096, floor_tok_s=12.5, headroom_bytes=512 << 20,
        kv_types=("f16", "q8_0"), budget=BudgetName.QUICK,
    )  # fmt: skip


def test_stop_keeps_what_was_measured(
    wizard: WizardPage, session: FakeSession, qtbot: QtBot
) -> None:
    """Stopping in the middle must end in a result with the trials so far."""
    session.gate.clear()
    wizard.model_step.quick.click()
    qtbot.waitUntil(lambda: len(wizard.run_step._trials) == session.hold_at)
    plot = wizard.run_step.plot
    qtbot.waitUntil(lambda: plot.summary.startswith("Decode is best at GPU layers 28"))
    wizard.run_step.stop.click()
    qtbot.waitUntil(lambda: wizard.step == "result")
    assert "not finished" in wizard.result_step._status.text
    table = wizard.result_step.plot.table
    qtbot.waitUntil(lambda: len(table.rows.rows) == session.hold_at)


def test_escape_stops_the_search(
    wizard: WizardPage, session: FakeSession, window: MainWindow, qtbot: QtBot
) -> None:
    """Esc must stop what runs."""
    session.gate.clear()
    wizard.model_step.quick.click()
    qtbot.waitUntil(lambda: len(wizard.run_step._trials) == session.hold_at)
    QTest.keyClick(wizard.run_step, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: wizard.step == "result")


def test_missing_model_is_said(wizard: WizardPage, session: FakeSession, qtbot: QtBot) -> None:
    """A model that has gone must be named on the page, with what to do."""
    session.problem = EnvironmentProblem("not_found", "There is no x.gguf.", "Choose another.")
    wizard.choose_model("x.gguf")
    qtbot.waitUntil(lambda: wizard.model_step.banner.text != "")
    assert wizard.model_step.banner.text == "There is no x.gguf. Choose another."
    assert wizard.step == "model"


def test_search_that_cannot_start_is_said(
    wizard: WizardPage, session: FakeSession, qtbot: QtBot
) -> None:
    """A refused search must lead back with its reason, and the next one must be possible."""
    session.problem = EnvironmentProblem("busy", "The GPU is in use by a chat.", "Close it.")
    wizard.model_step.quick.click()
    qtbot.waitUntil(lambda: wizard.model_step.banner.text != "")
    assert "in use by a chat" in wizard.model_step.banner.text
    session.problem = None
    qtbot.waitUntil(lambda: not wizard.runner.is_running)
    wizard.model_step.quick.click()
    qtbot.waitUntil(lambda: wizard.step == "result")


def test_bug_in_the_middle_does_not_end_the_window(
    wizard: WizardPage, session: FakeSession, qtbot: QtBot
) -> None:
    """A mistake of ours must become a sentence; the window must go on."""
    session.gate.clear()
    session.crash = RuntimeError("boom")
    wizard.model_step.quick.click()
    qtbot.waitUntil(lambda: len(wizard.run_step._trials) == session.hold_at)
    session.gate.set()
    qtbot.waitUntil(lambda: "boom" in wizard.model_step.banner.text)


def test_dropped_file_is_chosen(wizard: WizardPage, qtbot: QtBot) -> None:
    """A .gguf dropped on the page must be taken, spaces and umlauts included; others not."""

    def drop(path: str) -> bool:
        mime = QMimeData()
        mime.setUrls([QUrl.fromLocalFile(path)])
        step = wizard.model_step
        action, buttons = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
        no_key = Qt.KeyboardModifier.NoModifier
        enter = QDragEnterEvent(QPoint(5, 5), action, mime, buttons, no_key)
        enter.ignore()
        step.dragEnterEvent(enter)
        if enter.isAccepted():
            step.dropEvent(QDropEvent(QPoint(5, 5), action, mime, buttons, no_key))
        return enter.isAccepted()

    assert not drop("/tmp/picture.png")
    with qtbot.waitSignal(wizard.model_step.model_chosen) as chosen:
        assert drop("/tmp/mein Modell ü.GGUF")
    assert chosen.args == ["/tmp/mein Modell ü.GGUF"]
    qtbot.waitUntil(lambda: wizard.step == "goal")


def test_broken_model_cannot_be_chosen(wizard: WizardPage) -> None:
    """A row whose file is broken must say why and not lead on."""
    table = wizard.model_step.table
    table.selectRow(3)
    assert not wizard.model_step.next.isEnabled()
    assert "inside its header" in table.rows.rows[3][3]
    assert "inside its header" in wizard.model_step._hint.text()
    table.selectRow(0)
    assert "dropped" in wizard.model_step._hint.text()


def test_export_goes_to_the_clipboard(wizard: WizardPage, qtbot: QtBot) -> None:
    """An exported command must be on the clipboard and said so."""
    wizard.model_step.quick.click()
    qtbot.waitUntil(lambda: wizard.step == "result")
    view = wizard.result_step
    view._export.menu().actions()[0].trigger()
    qtbot.waitUntil(lambda: "llama-server" in view.banner.text)
    assert QApplication.clipboard().text() == "llama-server --n-gpu-layers 28 # llama-server ab12"
    view._copy.click()
    best = data.result().recommended
    assert best is not None
    assert best.decode_tok_s is not None
    speed = format_tok_s(best.decode_tok_s.median).replace("\u00a0", " ")
    assert f"{speed} decode" in QApplication.clipboard().text().replace("\u00a0", " ")


def test_stopped_search_that_still_ends_blocks_no_choice(
    wizard: WizardPage, session: FakeSession, window: MainWindow, qtbot: QtBot
) -> None:
    """A model chosen just after a stop must be read; plans wait until the engine is free."""
    wizard.choose_model("x")
    qtbot.waitUntil(lambda: wizard.step == "goal")
    session.plan_gate.clear()
    wizard.goal_step.next.click()
    assert wizard.step == "plan"
    qtbot.waitUntil(lambda: len(session.requests) == 1)
    wizard.runner.drop()
    wizard.choose_model("y")
    qtbot.waitUntil(lambda: wizard.step == "goal")
    # Held by the gate, not by time: on a slow machine the search must not have ended by itself.
    assert wizard.runner.is_running
    assert not wizard.goal_step.next.isEnabled()
    assert not wizard.model_step.quick.isEnabled()
    session.plan_gate.set()
    qtbot.waitUntil(lambda: not wizard.runner.is_running)
    assert wizard.goal_step.next.isEnabled()
    assert wizard.model_step.quick.isEnabled()


def test_stop_before_the_first_trial_leads_back(wizard: WizardPage, qtbot: QtBot) -> None:
    """Start and Stop in one breath leave no result; the page must not wait for one."""
    wizard.choose_model("x")
    qtbot.waitUntil(lambda: wizard.step == "goal")
    wizard.goal_step.next.click()
    qtbot.waitUntil(wizard.plan_step.start.isEnabled)
    wizard.runner.stop()
    wizard.plan_step.start.click()
    wizard.run_step.stop.click()
    qtbot.waitUntil(lambda: wizard.step == "goal")


@pytest.mark.parametrize("kind", ["adapter", "projector", "vocabulary", "embedding"])
def test_model_without_text_gets_no_plan(kit: Kit, qtbot: QtBot, kind: str) -> None:
    """A file that writes no text must be refused with the reason before a plan is made."""
    step = GoalStep(kit)
    qtbot.addWidget(step)
    step.show_model(msgspec.structs.replace(data.SPEC, kind=kind))
    assert not step.next.isEnabled()
    assert "writes no text" in step.banner.text
    step.set_busy(False)
    assert not step.next.isEnabled()
    step.show_model(data.SPEC)
    assert step.next.isEnabled()


def test_plan_without_gpu_names_no_gpu_stage(kit: Kit, qtbot: QtBot) -> None:
    """On the CPU alone there are no layers to place; its own speed must be the first stage."""
    step = PlanStep(kit)
    qtbot.addWidget(step)
    space = msgspec.structs.replace(data.PLAN.space, devices=())
    names = ("layers", "auto_fit", "cpu", "load_mode", "threads")
    stages = tuple(PlannedStage(stage=n, min_loads=0, max_loads=1) for n in names)
    step.show_plan(
        msgspec.structs.replace(
            data.PLAN, space=space, stages=stages, notes=("depth_reduced_to_model",)
        )
    )
    assert step.table.rows.rows == (("Speed on the CPU", "1"), ("Threads", "0–1"))
    assert step._notes.text().startswith("The model's context is shorter")


def test_plan_shows_its_advice(kit: Kit, qtbot: QtBot) -> None:
    """What the rules say of a plan stands beneath it, with what to do, before anything loads."""
    step = PlanStep(kit)
    qtbot.addWidget(step)
    finding = Finding(id="battery_search", severity=Severity.HINT)
    step.show_plan(msgspec.structs.replace(data.PLAN, findings=(finding,)))
    assert "battery" in step._notes.text()
    assert "Plug in" in step._notes.text()
    assert step._notes.isVisibleTo(step)


@pytest.mark.parametrize(("goes_on", "status"), [(True, "complete"), (False, "cancelled")])
def test_a_search_that_waits_asks(
    wizard: WizardPage, session: FakeSession, qtbot: QtBot, goes_on: bool, status: str
) -> None:
    """On another power source nothing may be measured before the user says so; Stop keeps all."""
    session.pause_at = 3
    wizard.model_step.quick.click()
    qtbot.waitUntil(wizard.run_step.go_on.isVisible)
    assert "power source changed" in wizard.run_step.why_paused.text()
    assert len(wizard.run_step._trials) == 3
    (wizard.run_step.go_on if goes_on else wizard.run_step.stop).click()
    qtbot.waitUntil(lambda: wizard.step == "result")
    shown = wizard.result_step._result
    assert shown is not None
    assert shown.status == status
    assert not wizard.run_step.go_on.isVisible()


def test_without_the_demo_model_one_click_takes_what_is_here(kit: Kit, qtbot: QtBot) -> None:
    """Downloads bring no demo model: it is not offered, and one click needs another one."""
    step = ModelStep(kit, "")
    qtbot.addWidget(step)
    assert step.quick.isEnabled()
    step.show_models([])
    assert step.table.rows.rows == ()
    assert not step.quick.isEnabled()
    assert not step.next.isEnabled()
    entry = ModelEntry(id="jan:a", origin="jan", name="a", path="/models/a.gguf", file_bytes=1)
    step.show_models([entry])
    with qtbot.waitSignal(step.quick_requested) as asked:
        step.quick.click()
    assert asked.args == ["/models/a.gguf"]
