"""Stored results: listed, opened, or absent."""

import msgspec
from pytestqt.qtbot import QtBot

from app.domain.finding import Finding, Severity
from tests.fakes import window_data as data
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.late_pages import LatePages
from views.main_window import MainWindow
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
    qtbot.waitUntil(lambda: "stopped by you" in page.view._status.text)


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


def test_result_shows_its_advice(kit: Kit, qtbot: QtBot) -> None:
    """What the rules say of the measurements stands among the reasons, with what to do."""
    view = ResultView(kit)
    qtbot.addWidget(view)
    finding = Finding(id="disturbed", severity=Severity.HINT, evidence={"count": 2})
    view.show_result(msgspec.structs.replace(data.result(), findings=(finding,)), "Qwen")
    assert "2 trials were disturbed" in view._reasons.text()
    assert "measure again" in view._reasons.text()
