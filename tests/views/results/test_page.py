"""Stored results: listed, opened, or absent."""

from pytestqt.qtbot import QtBot

from tests.fakes import window_data as data
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.late_pages import LatePages
from views.main_window import MainWindow
from views.results.text import gain_text, result_text


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
