"""The developers' page: every block in every state."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.domain.memory import Verdict
from tests.fakes.gui_guard import GuiGuard
from views.gallery import GalleryPage
from views.main_window import MainWindow
from views.widgets import Banner, Pill
from views.widgets.memory_bar import MemoryBar
from views.widgets.pill import TONES


def test_every_state_is_there_and_no_menu_leads_to_it(
    window: MainWindow, guard: GuiGuard, qtbot: QtBot
) -> None:
    """The keys must open a page with every tone, verdict and icon."""
    guard.is_armed = False  # developers only: it is built at once
    keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(window, Qt.Key.Key_G, keys)
    qtbot.waitUntil(lambda: "gallery" in window.on_demand.pages)
    page = window.on_demand.pages["gallery"]
    assert isinstance(page, GalleryPage)
    qtbot.waitUntil(page.isVisible)
    for kind, count in ((Banner, len(TONES)), (MemoryBar, len(Verdict))):
        assert len(page.findChildren(kind)) == count
    assert {p.text for p in page.findChildren(Pill)} >= set(TONES)
    shown = {w.toolTip() for w in page.findChildren(QWidget)}
    assert set(window._kit.icons.names) <= shown
