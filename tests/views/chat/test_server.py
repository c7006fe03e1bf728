"""The server's panel: address, token, requests, stop; a chat beside it where both fit."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.domain.errors import EnvironmentProblem
from tests.fakes.session import ANSWER, FakeSession
from tests.views.chat.conftest import User
from views.chat.page import ChatPage


def test_server_shows_who_it_is_and_stops(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """The chat's model is unloaded for it; address and key can be copied; Stop ends it."""
    user.say("one")
    chat.with_server.setChecked(True)
    server = chat.server
    server.port.setValue(8123)
    server.start.click()
    qtbot.waitUntil(lambda: server.requests.text() == "2 so far, 1 now")
    assert session.n_unloads == 1
    assert server.address.text() == "http://127.0.0.1:8123/v1"
    assert (server.token.text(), server.model.text()) == ("secret-token", "Qwen2.5 7B Instruct")
    server.stop.click()
    qtbot.waitUntil(lambda: not server.is_running)
    assert server.token.text() == ""
    user.say("two")
    assert user.texts()[-1] == ("assistant", ANSWER)


def test_server_that_does_not_start_is_said(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """A port in use, say, is a sentence, and another attempt is possible."""
    session.problem = EnvironmentProblem("port_in_use", "Port 80 is taken.", "Use another.")
    chat.with_server.setChecked(True)
    chat.server.start.click()
    qtbot.waitUntil(lambda: not chat.server.is_running)
    assert chat.banner.text == "Port 80 is taken. Use another."
    assert not chat.server.start.isHidden()


def test_message_is_answered_beside_the_server(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """Where both fit, nobody has to stop the server to chat."""
    chat.with_server.setChecked(True)
    chat.server.start.click()
    qtbot.waitUntil(lambda: "40404" in chat.server.address.text())
    QTest.keyClicks(chat.composer.field, "one")
    QTest.keyClick(chat.composer.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: user.texts() == [("user", "one"), ("assistant", ANSWER)])
    assert chat.server.is_running
    chat.server.stop.click()
    user.settle()


def test_message_waits_for_a_server_that_leaves_no_room_and_can_be_stopped(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """The wait is said and can be given up; the question stays."""
    chat.with_server.setChecked(True)
    chat.server.start.click()
    qtbot.waitUntil(lambda: "40404" in chat.server.address.text())
    session.problem = EnvironmentProblem("busy", "It does not fit beside it.", "End the other.")
    user.say("one", waits=False)
    qtbot.waitUntil(lambda: "the server uses it" in chat.state.text)
    chat.composer.stop.click()
    qtbot.waitUntil(lambda: not chat.scene.is_answering)
    qtbot.waitUntil(lambda: user.texts() == [("user", "one")])
    chat.server.stop.click()
    user.settle()


def test_closing_the_window_ends_the_server(chat: ChatPage, qtbot: QtBot) -> None:
    """A running server must not keep the window, nor outlive it."""
    chat.with_server.setChecked(True)
    chat.server.start.click()
    qtbot.waitUntil(lambda: "40404" in chat.server.address.text())
    assert QApplication.instance() is not None  # the fixture closes the window and waits
