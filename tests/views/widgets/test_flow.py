"""Rows that go on below where there is no room."""

from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from tests.fakes.layouts import settle
from views.widgets import Kit
from views.widgets.flow import Flow
from views.widgets.sides import Sides


def shown(qtbot: QtBot, child: QWidget, width: int) -> QWidget:
    """Return a page of ``width`` that shows ``child``."""
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(child)
    column.addStretch(1)
    page.resize(width, 300)
    page.show()
    settle()
    return page


def flow_of_three() -> tuple[Flow, list[QPushButton]]:
    """Return a row with a gap behind its first button."""
    flow = Flow(4)
    buttons = [QPushButton(text) for text in ("First", "Second", "Third")]
    flow.addWidget(buttons[0])
    flow.add_gap()
    for button in buttons[1:]:
        flow.addWidget(button)
    return flow, buttons


def test_with_room_the_rest_stands_at_the_end(qtbot: QtBot) -> None:
    """In a wide page there must be one line: the title left, the buttons right."""
    flow, buttons = flow_of_three()
    _page = shown(qtbot, flow, 600)
    assert len({button.y() for button in buttons}) == 1
    assert buttons[0].x() == 0
    assert buttons[2].geometry().right() == flow.width() - 1


def test_without_room_it_goes_on_below(qtbot: QtBot) -> None:
    """In a narrow page nothing may be cut or overlap, and the row takes the height it needs."""
    flow, buttons = flow_of_three()
    wide = max(button.sizeHint().width() for button in buttons)
    _page = shown(qtbot, flow, wide)
    places = [button.geometry() for button in buttons]
    assert all(place.right() < wide for place in places)
    assert places[0].bottom() < places[1].top() < places[2].top()
    assert flow.height() == places[2].bottom() + 1
    assert all(b.width() >= b.sizeHint().width() for b in buttons)


def test_hidden_ones_take_no_room(qtbot: QtBot) -> None:
    """What is hidden later must give its place to the others."""
    flow, buttons = flow_of_three()
    _page = shown(qtbot, flow, 600)
    before = buttons[1].x()
    buttons[2].hide()
    qtbot.waitUntil(lambda: buttons[1].x() > before)
    assert buttons[1].geometry().right() == flow.width() - 1


def test_first_place_is_before_the_gap(qtbot: QtBot) -> None:
    """A button put first must stand left, although the others stand right."""
    flow = Flow(4)
    flow.add_gap()
    last, first = QPushButton("Last"), QPushButton("New")
    flow.addWidget(last)
    flow.insert_widget(0, first)
    _page = shown(qtbot, flow, 400)
    assert first.x() == 0
    assert last.geometry().right() == flow.width() - 1


def test_sides_turn_when_one_appears(kit: Kit, qtbot: QtBot) -> None:
    """An area that is shown later must go above the other where both do not fit."""
    sides = Sides(kit)
    left, right = QWidget(), QWidget()
    for area in (left, right):
        area.setMinimumSize(200, 20)
        sides.add(area)
    left.hide()
    _page = shown(qtbot, sides, 300)
    left.show()
    qtbot.waitUntil(lambda: right.y() > left.y())
    assert right.x() == left.x() == 0
