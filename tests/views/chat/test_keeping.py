"""What is kept: conversations, drafts, attachments with their sizes, the profile of each chat."""

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMessageBox
from pytestqt.qtbot import QtBot

from app.chat.attach import Attachment
from tests.fakes.gui_guard import GuiGuard
from tests.fakes.session import ANSWER, FakeSession
from tests.views.chat.conftest import User
from tests.views.conftest import OpenWindow
from views.chat.page import ChatPage
from views.chat.picker import Choice


def rows(chat: ChatPage) -> list[str]:
    """Return the texts of the list of conversations."""
    return [chat.history.list.item(n).text() for n in range(chat.history.list.count())]


def test_search_finds_and_opens_the_turn(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """Words in any conversation are found; opening goes to the turn, also in another branch."""
    user.say("the tides of the sea")
    session.answer = "lunar"
    chat.transcript.acted.emit("retry", chat.transcript.turns[-1].view)
    user.wait()
    chat.new.click()
    user.settle()
    user.say("about cooking")
    assert [row.split("\n")[0] for row in rows(chat)] == ["about cooking", "the tides of the sea"]
    chat.history.search.setText("vectors")  # in the first, older answers of both
    user.settle()
    assert len(rows(chat)) == 1
    assert "vectors" in rows(chat)[0]
    chat.history.list.itemActivated.emit(chat.history.list.item(0))
    user.settle()
    assert user.texts() == [("user", "the tides of the sea"), ("assistant", ANSWER)]
    chat.history.search.setText("nowhere at all")
    user.settle()
    assert rows(chat) == []
    assert chat.history.nothing.text() == "Nothing found."


def test_title_in_the_list_goes_with_its_message(chat: ChatPage, user: User) -> None:
    """The list of conversations must not go on showing words that were deleted."""
    user.say("the harbour")
    assert rows(chat)[0].startswith("the harbour\n")
    chat._ask_to_delete(1)
    box = chat.findChild(QMessageBox)
    assert isinstance(box, QMessageBox)
    box.button(box.StandardButton.Discard).click()
    user.settle()
    assert rows(chat)[0].startswith("—\n")


def test_conversation_is_renamed_and_deleted(
    chat: ChatPage, session: FakeSession, user: User, guard: GuiGuard
) -> None:
    """F2 renames; Delete asks, and then the text is in no file of the database any more."""
    user.say("the zanzibar recipe")
    chat.with_history.setChecked(True)
    chat.history.list.setCurrentRow(0)
    QTest.keyClick(chat.history.list, Qt.Key.Key_F2)
    dialog = chat.history.findChild(QInputDialog)
    assert isinstance(dialog, QInputDialog)
    dialog.setTextValue("Cooking")
    dialog.accept()
    user.settle()
    assert rows(chat)[0].startswith("Cooking")
    chat.history.list.setCurrentRow(0)
    QTest.keyClick(chat.history.list, Qt.Key.Key_Delete)
    box = chat.history.findChild(QMessageBox)
    assert isinstance(box, QMessageBox)
    box.button(box.StandardButton.Discard).click()
    user.settle()
    assert rows(chat) == []
    assert user.texts() == []
    with guard.paused():
        folder = session.store().path.parent
        data = b"".join(p.read_bytes() for p in folder.glob("rigtune.db*"))
        assert b"zanzibar" not in data


def test_conversation_is_exported(
    chat: ChatPage, user: User, tmp_path: Path, guard: GuiGuard
) -> None:
    """Markdown to read, JSON with every branch."""
    user.say("one")
    chat.history.list.setCurrentRow(0)
    for name in ("chat.md", "chat.json"):
        chat.history.export.click()
        dialog = chat.findChild(QFileDialog)
        assert isinstance(dialog, QFileDialog)
        dialog.fileSelected.emit(str(tmp_path / name))
        dialog.done(0)
        dialog.setParent(None)
        user.settle()
    with guard.paused():
        assert (tmp_path / "chat.md").read_text("utf-8").startswith("# one\n")
        assert '"rigtune.conversation/1"' in (tmp_path / "chat.json").read_text("utf-8")


def test_export_that_fails_is_said(chat: ChatPage, user: User, tmp_path: Path) -> None:
    """A folder that is not there must be a sentence, and the chat goes on."""
    user.say("one")
    chat.history.list.setCurrentRow(0)
    chat.history.export.click()
    dialog = chat.findChild(QFileDialog)
    assert isinstance(dialog, QFileDialog)
    dialog.fileSelected.emit(str(tmp_path / "nowhere" / "chat.md"))
    dialog.done(0)
    user.settle()
    assert "nowhere" in chat.banner.text
    user.say("two")
    assert user.texts()[-1] == ("assistant", ANSWER)


def test_drafts_are_kept_per_conversation(
    open_window: OpenWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """What was written and not sent must come back: with its chat, and after a restart."""
    window = open_window(session)
    assert window.late is not None
    window.open_page("chat")
    user = User(window.late.chat, qtbot)
    user.settle()
    chat = user.chat
    user.say("one")
    QTest.keyClicks(chat.composer.field, "of one")
    chat.new.click()
    user.settle()
    assert chat.composer.field.toPlainText() == ""
    QTest.keyClicks(chat.composer.field, "of a new one")
    window.finish()
    qtbot.waitUntil(lambda: not window.isVisible())
    session._store = None
    again = open_window(session)
    assert again.late is not None
    again.open_page("chat")
    user = User(again.late.chat, qtbot)
    user.settle()
    assert user.chat.composer.field.toPlainText() == "of a new one"
    user.chat.history.list.itemActivated.emit(user.chat.history.list.item(0))
    user.settle()
    assert user.texts()[0] == ("user", "one")
    assert user.chat.composer.field.toPlainText() == "of one"


def test_attached_file_shows_its_tokens_and_goes_along(
    chat: ChatPage, session: FakeSession, user: User, tmp_path: Path, guard: GuiGuard
) -> None:
    """Estimated before a model is loaded, counted by it afterwards; sent once."""
    path = tmp_path / "notes.txt"
    with guard.paused():
        path.write_text("alpha beta gamma delta", encoding="utf-8")
    chat.attaching.read([str(path)])
    user.settle()
    assert list(chat.composer.chip_texts()) == ["notes.txt: \u2248\u00a06 tokens"]
    user.say("what is this?")
    assert session.asked[-1][0].content == (
        "File notes.txt:\n```\nalpha beta gamma delta\n```\n\nwhat is this?"
    )
    assert list(chat.composer.chip_texts()) == []
    chat.attaching.read([str(path)])
    user.settle()
    assert list(chat.composer.chip_texts()) == ["notes.txt: 4 tokens"]


def test_file_that_is_no_text_is_refused(
    chat: ChatPage, user: User, tmp_path: Path, guard: GuiGuard
) -> None:
    """A picture is a sentence, not an attachment."""
    path = tmp_path / "picture.png"
    with guard.paused():
        path.write_bytes(b"\x89PNG\r\n\0\0")
    chat.attaching.read([str(path)])
    user.settle()
    assert "picture.png is not a text file." in chat.banner.text
    assert chat.composer.attachments == {}


def test_huge_paste_becomes_an_attachment(chat: ChatPage, session: FakeSession, user: User) -> None:
    """A megabyte must not make the field slow, and its size is seen before it is sent."""
    data = QMimeData()
    data.setText("word " * 200_000)
    chat.composer.field.insertFromMimeData(data)
    assert chat.composer.field.toPlainText() == ""
    assert list(chat.composer.chip_texts()) == ["pasted text: \u2248\u00a0250,000 tokens"]
    user.say("sum it up")
    assert len(session.asked[-1][0].content) > 1_000_000
    assert user.texts()[-1] == ("assistant", ANSWER)


def test_what_is_too_long_to_count_is_said_once(chat: ChatPage, user: User) -> None:
    """The keys typed beside it must not say it again, nor must it keep others from a count."""
    user.say("hello")
    for name, text in (("long.txt", "word " * 250_000), ("short.txt", "one two three")):
        chat.composer.add(Attachment(name=name, text=text))
    user.settle()
    assert "larger than 1 MiB" in chat.banner.text
    assert list(chat.composer.chip_texts())[1] == "short.txt: 3 tokens"
    chat.banner.hide()
    QTest.keyClicks(chat.composer.field, "what is in it?")
    user.settle()
    assert chat.banner.isHidden()
    chat.composer.add(Attachment(name="other.txt", text="word " * 250_000))
    user.settle()
    assert "larger than 1 MiB" in chat.banner.text


def test_conversation_brings_its_profile_back(
    chat: ChatPage, session: FakeSession, user: User
) -> None:
    """Opening a conversation must choose the model and profile it was had with."""
    chat.offer("/models/a.gguf", "ab12")
    user.say("one")
    chat.offer("/models/b.gguf", None)
    user.settle()
    user.say("two")
    item = next(n for n, row in enumerate(rows(chat)) if row.startswith("one"))
    chat.history.list.itemActivated.emit(chat.history.list.item(item))
    user.settle()
    assert chat.picker.choice == Choice(model="/models/a.gguf", profile_id="ab12")


def test_another_profile_can_take_a_conversation_over(
    chat: ChatPage, session: FakeSession, user: User, guard: GuiGuard
) -> None:
    """Choosing another profile must keep the conversation, and be remembered with it."""
    user.say("one")
    chat.picker._choices.append(Choice(model="/models/c.gguf", profile_id="ab12"))
    chat.picker._on_activated(len(chat.picker._choices) - 1)
    user.say("two")
    assert [m.content for m in session.asked[-1]] == ["one", ANSWER, "two"]
    with guard.paused():
        (kept,) = session.store().conversations()
    assert (kept.model_path, kept.profile_id) == ("/models/c.gguf", "ab12")
