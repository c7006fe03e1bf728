"""Stored results: listed, opened, or absent."""

from pathlib import Path

import msgspec
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.domain.finding import Finding, Severity
from app.domain.sweep import Goal, Reason
from tests.fakes import window_data as data
from tests.fakes.gui_guard import GuiGuard
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.late_pages import LatePages
from views.main_window import MainWindow
from views.results.page import ResultsPage
from views.results.result_view import ResultView
from views.results.text import gain_text, points_of, result_text
from views.widgets import Kit


def test_newest_result_is_open_and_others_can_be(
    window: MainWindow, late: LatePages, qtbot: QtBot
) -> None:
    """The newest search must be shown at once, another one when its row is chosen."""
    window.open_page("results")
    page = late.results
    qtbot.waitUntil(lambda: "complete" in page.view._status.text)
    assert page.table.rows.rows[0][:2] == (data.SPEC.name, "Chat")
    page.table.selectRow(1)
    qtbot.waitUntil(lambda: "not finished" in page.view._status.text)


def test_chat_on_a_stored_result(window: MainWindow, late: LatePages, qtbot: QtBot) -> None:
    """A stored result must lead to a chat on its profile."""
    window.open_page("results")
    qtbot.waitUntil(late.results.view.chat.isEnabled)
    late.results.view.chat.click()
    assert late.chat.isVisible()
    assert late.chat.picker.choice.profile_id == "ab12"


def test_no_results_yet(open_window: OpenWindow, qtbot: QtBot) -> None:
    """Without results the page must say so and lead to a search."""
    window = open_window(FakeSession(has_results=False))
    assert window.late is not None
    window.open_page("results")
    page = window.late.results
    qtbot.waitUntil(lambda: not page._empty.isHidden())
    page._empty.button.click()
    assert window.late.wizard.isVisible()


def test_text_holds_the_whole_answer() -> None:
    """The copied text must name every configuration and every reason."""
    text = result_text(data.result(), "Qwen")
    for word in (
        "Recommended",
        "Knee",
        "own fit",
        "CPU only",
        "GPU layers 28",
        "takes 36 % longer",
    ):
        assert word in text
    assert "36\u00a0% faster" in gain_text(data.result())


def test_no_gain_is_shown_that_was_not_told_apart() -> None:
    """Where measurement leaves llama.cpp's own fit as fast, only the reason speaks of it."""
    close = Reason(code="auto_fit_close", data={"gain_pct": 3.0, "n_gpu_layers": 20, "trial": 2})
    result = msgspec.structs.replace(data.result(), reasons=(close,))
    assert gain_text(result) == ""


def test_reference_that_won_is_not_repeated() -> None:
    """On a machine without GPU knee and CPU are the answer itself and must not be listed again."""
    best = data.recommended(9, 31.8, "ab12")
    result = msgspec.structs.replace(
        data.result(), recommended=best, knee=best, baseline_cpu=best, baseline_auto_fit=None
    )
    assert [name for name, _ in points_of(result)] == ["Recommended"]
    assert len(points_of(data.result())) == 4


def test_speeds_name_their_depth(kit: Kit, qtbot: QtBot) -> None:
    """A speed holds at a fill of the context, which must stand beside it."""
    view = ResultView(kit)
    qtbot.addWidget(view)
    view.show_result(data.result(), "Qwen")
    assert view._caption.text() == "Recommended · speeds at 2,048 tokens in context"
    assert "at 2,048 tokens in context" in result_text(data.result(), "Qwen")


def opened(window: MainWindow, late: LatePages, qtbot: QtBot) -> ResultsPage:
    """Return the page with the newest result on screen."""
    window.open_page("results")
    page = late.results
    qtbot.waitUntil(lambda: "complete" in page.view._status.text and not window.jobs.running())
    return page


def test_name_shows_in_the_list(window: MainWindow, late: LatePages, qtbot: QtBot) -> None:
    """A name must replace the model's; an empty one changes nothing."""
    page = opened(window, late, qtbot)
    page.rename("   ")
    page.rename("Büro 机器")
    qtbot.waitUntil(lambda: page.table.rows.rows[0][0] == "Büro 机器")
    qtbot.waitUntil(lambda: page.view._model == "Büro 机器")


def test_deleting_can_be_undone(window: MainWindow, late: LatePages, qtbot: QtBot) -> None:
    """A deleted result must go at once and come back with Undo."""
    page = opened(window, late, qtbot)
    page.tools.delete.click()
    qtbot.waitUntil(lambda: len(page.table.rows.rows) == 1)
    assert page.banner.text == f"Deleted: {data.SPEC.name}"
    qtbot.waitUntil(lambda: "not finished" in page.view._status.text)
    page.banner._action.click()
    qtbot.waitUntil(lambda: len(page.table.rows.rows) == 2)
    qtbot.waitUntil(lambda: not window.jobs.running())
    assert page._shown == 2
    assert "complete" in page.view._status.text
    assert page.table.currentIndex().row() == 0


def test_undo_ends_with_the_window(
    window: MainWindow, late: LatePages, session: FakeSession, qtbot: QtBot
) -> None:
    """What is still deleted when the window closes must be gone for good."""
    window.close()
    qtbot.waitUntil(lambda: not window.isVisible())
    assert session.is_purged


def test_check_again_says_what_has_become(
    window: MainWindow, late: LatePages, session: FakeSession, qtbot: QtBot
) -> None:
    """A new driver must be said, and the check must give old and new speed."""
    session.changed = ("driver",)
    page = opened(window, late, qtbot)
    assert "the GPU driver" in page.banner.text
    page.banner._action.click()
    qtbot.waitUntil(lambda: "−6\u00a0%, outside noise" in page.banner.text)
    qtbot.waitUntil(lambda: not page.rechecker.is_running)
    assert page.tools.check.isEnabled()


def test_two_results_side_by_side(window: MainWindow, late: LatePages, qtbot: QtBot) -> None:
    """The second choice in the list must show both; closing leads back to one."""
    page = opened(window, late, qtbot)
    page.tools.compare.click()
    page.table.selectRow(1)
    qtbot.waitUntil(page.compare.isVisible)
    assert page.compare.table.rows.rows[0][0] == "Decode, tok/s"
    page.compare.close_button.click()
    assert page.view.isVisible()


def test_file_goes_out_and_comes_in(
    window: MainWindow, late: LatePages, guard: GuiGuard, tmp_path: Path, qtbot: QtBot
) -> None:
    """A saved result must be readable again; another file is refused with a sentence."""
    page = opened(window, late, qtbot)
    target = tmp_path / "ä 结果.json"
    page.save_to(str(target))
    qtbot.waitUntil(lambda: page.banner.text.startswith("Written"))
    with guard.paused():
        assert target.read_bytes() == b'{"sweep": 2}'
        other = tmp_path / "other.json"
        other.write_text("{}")
    page.load_from(str(target))
    qtbot.waitUntil(lambda: "in the list" in page.banner.text)
    qtbot.waitUntil(lambda: "not finished" in page.view._status.text)  # the file's own answer
    assert page.table.currentIndex().row() == 1
    page.load_from(str(other))
    qtbot.waitUntil(lambda: "holds no RigTune result" in page.banner.text)
    page.load_from(str(tmp_path / "gone.json"))
    qtbot.waitUntil(lambda: "cannot be read" in page.banner.text)
    page.save_to(str(target / "x.json"))
    qtbot.waitUntil(lambda: "cannot be written" in page.banner.text)


def test_a_change_of_engine_is_said_on_the_next_visit(
    window: MainWindow, late: LatePages, session: FakeSession, tmp_path: Path, qtbot: QtBot
) -> None:
    """The engine may be changed in the settings while the result is already on the page."""
    page = opened(window, late, qtbot)
    page.save_to(str(tmp_path / "x.json"))  # whatever was said last must not hide it
    qtbot.waitUntil(lambda: page.banner.text.startswith("Written"))
    window.open_page("settings")
    qtbot.waitUntil(lambda: not page.isVisible())
    session.changed = ("engine",)
    window.open_page("results")
    qtbot.waitUntil(lambda: "the engine build" in page.banner.text)
    assert page.banner._action.text() == "Check Again"


def test_measuring_again_can_be_stopped(
    window: MainWindow, late: LatePages, session: FakeSession, qtbot: QtBot
) -> None:
    """A check that takes too long must have its Stop beside it, and leave nothing half said."""
    page = opened(window, late, qtbot)
    session.gate.clear()
    page.tools.check.click()
    qtbot.waitUntil(lambda: "timing decode" in page.banner.text)
    assert page.banner._action.text() == "Stop"
    page.banner._action.click()
    qtbot.waitUntil(lambda: page.banner.text.startswith("Stopped."))
    assert page.tools.check.isEnabled()
    assert page.banner._action.isHidden()


def test_other_goal_begins_a_search(window: MainWindow, late: LatePages, qtbot: QtBot) -> None:
    """An alternative that was not measured must lead to a search for it, one press away."""
    page = opened(window, late, qtbot)
    button = page.view.alternatives.buttons["longer"]
    assert isinstance(button, QPushButton)
    button.click()
    qtbot.waitUntil(lambda: late.wizard.step == "goal")
    assert late.wizard.goal_step.goals.goal is Goal.LONG_CONTEXT


def test_result_shows_its_advice(kit: Kit, qtbot: QtBot) -> None:
    """What the rules say of the measurements stands among the reasons, with what to do."""
    view = ResultView(kit)
    qtbot.addWidget(view)
    finding = Finding(id="disturbed", severity=Severity.HINT, evidence={"count": 2})
    view.show_result(msgspec.structs.replace(data.result(), findings=(finding,)), "Qwen")
    assert "Trials disturbed: 2" in view._reasons.text()
    assert "measure again" in view._reasons.text()
