"""A message that does not fit comes back to where it was written."""

from pathlib import Path

import pytest
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from tests.fakes.gui_guard import GuiGuard
from tests.fakes.session import ANSWER, FakeSession
from tests.views.chat.conftest import User
from views.chat.page import ChatPage

LONG = "much too long to fit"


@pytest.fixture(autouse=True)
def small(session: FakeSession) -> None:
    """Refuse everything from now on; a test that wants an answer first raises the limit."""
    session.refuses_from = 5


def test_refused_first_message_is_in_the_field_again(
    chat: ChatPage, session: FakeSession, user: User, guard: GuiGuard
) -> None:
    """The page looks as before it was sent, and says why; it is kept as a draft."""
    user.say(LONG)
    assert chat.composer.field.toPlainText() == LONG
    assert "alone need" in chat.banner.text
    assert chat.banner._action.isHidden()
    assert user.texts() == []
    assert "Reading" not in chat.meter.speed.text()
    assert chat._empty.isVisible()
    assert chat.history.list.count() == 0
    with guard.paused():
        assert session.store().draft(None) == LONG
    session.refuses_from = 1000
    user.say("")
    assert user.texts() == [("user", LONG), ("assistant", ANSWER)]
    assert chat.composer.field.toPlainText() == ""


def test_refused_message_leaves_the_conversation_and_its_attachments(
    chat: ChatPage, session: FakeSession, user: User, tmp_path: Path, guard: GuiGuard
) -> None:
    """What went before stays in view; files are chips again, not text."""
    session.refuses_from = 1000
    user.say("hi")
    path = tmp_path / "notes.txt"
    with guard.paused():
        path.write_text("alpha beta gamma delta", encoding="utf-8")
    chat.attaching.read([str(path)])
    user.settle()
    session.refuses_from = 5
    user.say("sum it up")
    assert user.texts() == [("user", "hi"), ("assistant", ANSWER)]
    assert chat.composer.field.toPlainText() == "sum it up"
    assert list(chat.composer.chip_texts()) == ["notes.txt: 4 tokens"]
    assert "The chat needs" in chat.banner.text


def test_what_was_written_meanwhile_stays(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """The message comes back above it."""
    session.gate.clear()
    user.say(LONG, waits=False)
    qtbot.waitUntil(lambda: len(session.asked) == 1, timeout=20_000)
    QTest.keyClicks(chat.composer.field, "and then?")
    session.gate.set()
    user.wait()
    assert chat.composer.field.toPlainText() == LONG + "\n\nand then?"


def test_refused_edit_is_edited_on(chat: ChatPage, session: FakeSession, user: User) -> None:
    """The old branch is in view, the edit goes on, and giving it up brings the draft back."""
    session.refuses_from = 1000
    user.say("one")
    QTest.keyClicks(chat.composer.field, "draft")
    chat.transcript.acted.emit("edit", chat.transcript.turns[0].view)
    chat.composer.field.clear()
    session.refuses_from = 5
    user.say(LONG)
    assert user.texts() == [("user", "one"), ("assistant", ANSWER)]
    assert chat.composer.field.toPlainText() == LONG
    assert chat.composer.give_up.isVisible()
    session.refuses_from = 1000
    user.say("")
    assert [text for _, text in user.texts()] == [LONG, ANSWER]
    assert chat.transcript.turns[0].view.siblings == (1, 4)
    assert chat.composer.field.toPlainText() == "draft"


def test_message_of_a_conversation_that_is_left_becomes_its_draft(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """It is not written into the conversation that came into view."""
    session.refuses_from = 1000
    user.say("one")
    session.refuses_from = 5
    session.gate.clear()
    user.say(LONG, waits=False)
    qtbot.waitUntil(lambda: len(session.asked) == 2, timeout=20_000)
    chat.new.click()
    session.gate.set()
    user.settle()
    assert (chat.composer.field.toPlainText(), user.texts()) == ("", [])
    chat.history.list.itemActivated.emit(chat.history.list.item(0))
    user.settle()
    assert chat.composer.field.toPlainText() == LONG
    assert user.texts() == [("user", "one"), ("assistant", ANSWER)]
