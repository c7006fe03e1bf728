"""Texts that change every second."""

from pytestqt.qtbot import QtBot

from tests.fakes.layouts import settle, shown
from views.plots.live_strip import LiveStrip, StripInfo
from views.widgets import Kit
from views.widgets.live_text import LiveText


def test_a_new_number_needs_no_layout(kit: Kit, qtbot: QtBot) -> None:
    """Eight cards laid out every second would cost more than drawing their curves."""
    strip = LiveStrip(kit, StripInfo(name="Power", color="power", unit="W"))
    _page, count = shown(qtbot, strip)
    strip.show_points([(0.0, 888.0)], 60.0)
    settle()
    count.n = 0
    for value in (78.0, 95.0, 105.0):
        strip.show_points([(0.0, value)], 60.0)
        settle()
    assert count.n == 0
    assert strip._value.text() == "105\u00a0W"


def test_a_text_asks_for_room_only_where_it_needs_more(kit: Kit, qtbot: QtBot) -> None:
    """The same number of lines must leave the page alone; more of them must get their room."""
    text = LiveText(kit)
    _page, count = shown(qtbot, text)
    text.show_text("Memory: 3.81 GiB")
    settle()
    one_line = text.height()
    count.n = 0
    text.show_text("Memory: 3.92 GiB")
    settle()
    assert count.n == 0
    text.show_text("Memory: 3.92 GiB " * 9)
    qtbot.waitUntil(lambda: text.height() > one_line)
    assert text.accessibleName() == text.text()


def test_a_narrower_page_gives_the_lines_their_room(kit: Kit, qtbot: QtBot) -> None:
    """What takes two lines after the page was made narrower must be seen whole."""
    text = LiveText(kit)
    page, _count = shown(qtbot, text)
    page.resize(600, 200)
    text.show_text("now 199 tok/s, mean 200 tok/s, prompt 20 tokens, 426 tokens")
    settle()
    one_line = text.height()
    page.resize(200, 200)
    qtbot.waitUntil(lambda: text.height() == text.heightForWidth(text.width()) > one_line)
