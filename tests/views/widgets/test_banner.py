"""The message in a page."""

from pytestqt.qtbot import QtBot

from app.domain.errors import ErrorInfo
from views.widgets import Banner, Kit


def test_error_is_said_without_marks_of_a_terminal(kit: Kit, qtbot: QtBot) -> None:
    """Back-ticks around commands must not reach the window."""
    banner = Banner(kit)
    qtbot.addWidget(banner)
    banner.show_error(ErrorInfo(code="x", message="No profile.", hint="`rigtune tune` makes one."))
    assert banner.text == "No profile. rigtune tune makes one."
