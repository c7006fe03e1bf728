"""The chat: streams, stops, goes on after a crash, gives its memory to a search."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.domain.errors import EnvironmentProblem
from tests.fakes import window_data as data
from tests.fakes.session import ANSWER, FakeSession
from views.chat.page import ChatPage
from views.late_pages import LatePages
from views.main_window import MainWindow


@pytest.fixture
def chat(window: MainWindow, late: LatePages, qtbot: QtBot) -> ChatPage:
    """Return the chat page, shown."""
    window.open_page("chat")
    qtbot.waitUntil(lambda: not window.jobs.running("profiles"))
    return late.chat


def say(chat: ChatPage, text: str, qtbot: QtBot) -> None:
    """Write and send a message with the keyboard."""
    QTest.keyClicks(chat.composer.field, text)
    QTest.keyClick(chat.composer.field, Qt.Key.Key_Return)


def done(chat: ChatPage, qtbot: QtBot) -> None:
    """Wait for the end of an answer."""
    qtbot.waitUntil(lambda: not chat._is_answering)


def test_answer_streams_and_is_rendered(chat: ChatPage, qtbot: QtBot) -> None:
    """The whole answer must arrive, rendered in the end, with measured timings."""
    say(chat, "What is a KV cache?", qtbot)
    assert not chat.composer.stop.isHidden()
    done(chat, qtbot)
    answer = chat.transcript.messages[-1]
    assert answer.text == ANSWER
    assert "**" not in answer._body.toPlainText()
    assert "39.7\u00a0tok/s" in chat.meter._speed.text()
    assert "674" in chat.meter._context.text() or "of 4,096" in chat.meter._context.text()


def test_shift_return_begins_a_line(chat: ChatPage, qtbot: QtBot) -> None:
    """Shift+Enter must not send."""
    field = chat.composer.field
    QTest.keyClicks(field, "a")
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(field, "b")
    assert field.toPlainText() == "a\nb"
    assert chat.transcript.messages == []


def test_stop_keeps_the_part_and_the_conversation(
    chat: ChatPage, session: FakeSession, qtbot: QtBot
) -> None:
    """A stopped answer must stay, and the next message must build on it."""
    session.gate.clear()
    say(chat, "one", qtbot)
    qtbot.waitUntil(lambda: len(chat.transcript.messages[-1].text) > 20)
    chat.composer.stop.click()
    session.gate.set()
    done(chat, qtbot)
    part = chat.transcript.messages[1].text
    assert 0 < len(part) < len(ANSWER)
    say(chat, "two", qtbot)
    done(chat, qtbot)
    roles = [(m.role, m.content) for m in session.asked[-1]]
    assert roles == [("user", "one"), ("assistant", part), ("user", "two")]


def test_regenerate_replaces_the_answer(chat: ChatPage, session: FakeSession, qtbot: QtBot) -> None:
    """Regenerate must ask the same question anew, without the old answer."""
    say(chat, "one", qtbot)
    done(chat, qtbot)
    chat.regenerate.click()
    done(chat, qtbot)
    assert [m.content for m in session.asked[-1]] == ["one"]
    assert [m.role for m in chat.transcript.messages] == ["user", "assistant"]


def test_dead_engine_keeps_the_text_and_offers_restart(
    chat: ChatPage, session: FakeSession, qtbot: QtBot
) -> None:
    """A crash must be said, keep what was written, and a restart must answer."""
    session.breaks = True
    say(chat, "one", qtbot)
    done(chat, qtbot)
    assert chat.banner.text == "The engine ended. Restart."
    assert chat.transcript.messages[-1].text != ""
    session.breaks = False
    chat.banner._action.click()
    done(chat, qtbot)
    assert chat.transcript.messages[-1].text == ANSWER


def test_model_that_does_not_load_is_said_and_can_be_tried_again(
    chat: ChatPage, session: FakeSession, qtbot: QtBot
) -> None:
    """The question must not be lost when the model could not be loaded."""
    session.problem = EnvironmentProblem("no_room", "There is no room.", "Close something.")
    say(chat, "one", qtbot)
    done(chat, qtbot)
    assert "There is no room." in chat.banner.text
    session.problem = None
    chat.banner._action.click()
    done(chat, qtbot)
    assert [m.content for m in session.asked[-1]] == ["one"]
    assert chat.transcript.messages[-1].text == ANSWER


def test_model_without_template_is_said(chat: ChatPage, session: FakeSession, qtbot: QtBot) -> None:
    """Who chats with a base model must know why it answers oddly."""
    session.has_template = False
    say(chat, "one", qtbot)
    done(chat, qtbot)
    assert "no chat template" in chat.banner.text


def test_system_prompt_is_sent(chat: ChatPage, session: FakeSession, qtbot: QtBot) -> None:
    """The system prompt must lead the conversation."""
    chat.system.setText("Be brief.")
    say(chat, "one", qtbot)
    done(chat, qtbot)
    assert [m.role for m in session.asked[-1]] == ["system", "user"]


def test_search_takes_the_memory_and_the_chat_goes_on_after(
    chat: ChatPage, late: LatePages, session: FakeSession, qtbot: QtBot
) -> None:
    """A search must not start beside a loaded chat, and the conversation must survive it."""
    say(chat, "one", qtbot)
    done(chat, qtbot)
    late.wizard.start_quick("demo")
    qtbot.waitUntil(lambda: late.wizard.step == "result")
    assert chat._job is None
    say(chat, "two", qtbot)
    done(chat, qtbot)
    assert [m.content for m in session.asked[-1]] == ["one", ANSWER, "two"]


def test_new_chat_forgets(chat: ChatPage, session: FakeSession, qtbot: QtBot) -> None:
    """A new chat must not know the old one."""
    say(chat, "one", qtbot)
    done(chat, qtbot)
    chat.new.click()
    assert chat.transcript.messages == []
    say(chat, "two", qtbot)
    done(chat, qtbot)
    assert [m.content for m in session.asked[-1]] == ["two"]


def test_answer_cannot_fetch_anything(chat: ChatPage, qtbot: QtBot) -> None:
    """A picture in an answer must not make the window read a file or the network."""
    view = chat.transcript.add("assistant")
    view.append("![x](file:///etc/hostname) <b>not html</b>")
    view.finish()
    assert "<b>not html</b>" in view._body.toPlainText()


def test_message_is_copied(chat: ChatPage, qtbot: QtBot) -> None:
    """The copy button must give the text as it was written."""
    say(chat, "one", qtbot)
    done(chat, qtbot)
    chat.transcript.messages[-1]._on_copy_clicked()
    assert QApplication.clipboard().text() == ANSWER


def test_tuned_profile_is_offered_first(
    chat: ChatPage, late: LatePages, window: MainWindow, qtbot: QtBot
) -> None:
    """Chatting from a result must choose that profile, by its name and speed."""
    late.wizard.chat_requested.emit(data.SPEC.path, "ab12")
    assert chat.picker.choice.profile_id == "ab12"
    assert chat.picker.currentText() == "Qwen2.5 7B Instruct · 39.6\u00a0tok/s"
    assert window.state.last_profile == "ab12"
