"""What every test of the chat page needs: the page, shown, and a user who types."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from views.chat.blocks import Fold, TextBlock
from views.chat.head import Head
from views.chat.page import ChatPage
from views.chat.transcript import Transcript
from views.late_pages import LatePages
from views.main_window import MainWindow


class User:
    """Writes messages with the keyboard and waits for answers."""

    def __init__(self, chat: ChatPage, qtbot: QtBot) -> None:
        """Sit before ``chat``."""
        self.chat = chat
        self._qtbot = qtbot

    def say(self, text: str, *, waits: bool = True) -> None:
        """Write and send a message."""
        QTest.keyClicks(self.chat.composer.field, text)
        QTest.keyClick(self.chat.composer.field, Qt.Key.Key_Return)
        if waits:
            self.wait()

    def wait(self) -> None:
        """Wait for the end of an answer and of what is counted and read after it."""
        self._qtbot.waitUntil(lambda: not self.chat.scene.is_answering)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing but the chat itself runs."""
        self._qtbot.waitUntil(self._is_settled)

    def _is_settled(self) -> bool:
        staff = self.chat.staff
        job, desk = staff._job, staff.desk
        others = [j for j in self.chat._jobs.running() if j is not job]
        if job is None or desk is None:
            return not others
        return desk.is_idle and not others and not job._waiting and not job._outbox._items

    def texts(self) -> list[tuple[str, str]]:
        """Return role and text of every turn in view."""
        return [(t.view.role, t.text) for t in self.chat.transcript.turns]


def heads(view: Transcript) -> list[Head]:
    """Return the lines above the turns near sight, top to bottom."""
    return [w for w in view._in_order() if isinstance(w, Head)]


def text_blocks(view: Transcript) -> list[TextBlock]:
    """Return the texts near sight, top to bottom."""
    return [w for w in view._in_order() if isinstance(w, TextBlock)]


def folds(view: Transcript) -> list[Fold]:
    """Return the lines that unfold reasoning near sight, top to bottom."""
    return [w for w in view._in_order() if isinstance(w, Fold)]


@pytest.fixture
def chat(window: MainWindow, late: LatePages, qtbot: QtBot) -> ChatPage:
    """Return the chat page, shown."""
    window.open_page("chat")
    qtbot.waitUntil(lambda: not window.jobs.running())
    return late.chat


@pytest.fixture
def user(chat: ChatPage, qtbot: QtBot) -> User:
    """Return who writes on it."""
    return User(chat, qtbot)
