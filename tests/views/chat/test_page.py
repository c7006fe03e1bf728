"""The chat: streams, stops, goes on after a crash, gives its memory to a search."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from app.domain.errors import EnvironmentProblem
from app.store import Store
from tests.fakes import window_data as data
from tests.fakes.gui_guard import GuiGuard
from tests.fakes.session import ANSWER, FakeSession
from tests.views.chat.conftest import User, folds, heads, text_blocks
from views.chat import desk
from views.chat.page import ChatPage
from views.late_pages import LatePages
from views.main_window import MainWindow


def test_answer_streams_and_is_rendered(chat: ChatPage, user: User, qtbot: QtBot) -> None:
    """The whole answer must arrive, rendered in the end, with measured timings and the gauge."""
    user.say("What is a KV cache?", waits=False)
    assert not chat.composer.stop.isHidden()
    user.wait()
    assert user.texts()[-1] == ("assistant", ANSWER)
    qtbot.waitUntil(lambda: not chat.transcript._rest.isActive())
    shown = [w.toPlainText() for w in text_blocks(chat.transcript)]
    assert any("KV cache" in text for text in shown)
    assert not any("**" in text for text in shown)
    assert "mean 39.7\u00a0tok/s" in chat.meter.speed.text()
    assert "first token 212\u00a0ms" in chat.meter.speed.text()
    assert "prompt 640 tokens, 600 re-used, 1,930\u00a0tok/s" in chat.meter.speed.text()
    assert chat.meter.context.text().startswith("50 of 4,096 tokens: system 0, you 5, model 39")


def test_shift_return_begins_a_line(chat: ChatPage, user: User) -> None:
    """Shift+Enter must not send."""
    field = chat.composer.field
    QTest.keyClicks(field, "a")
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(field, "b")
    assert field.toPlainText() == "a\nb"
    assert user.texts() == []


def test_empty_message_is_not_sent(chat: ChatPage, user: User) -> None:
    """Blanks alone must do nothing at all."""
    user.say("  ", waits=False)
    assert user.texts() == []
    assert not chat.scene.is_answering


def test_stop_keeps_the_part_and_the_conversation(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """A stopped answer must stay, and the next message must build on it."""
    session.gate.clear()
    user.say("one", waits=False)
    qtbot.waitUntil(lambda: len(user.texts()) == 2 and len(user.texts()[1][1]) > 20)
    chat.composer.stop.click()
    session.gate.set()
    user.wait()
    part = user.texts()[1][1]
    assert 0 < len(part) < len(ANSWER)
    desk_now = chat.staff.desk
    assert desk_now is not None
    assert desk_now._seat.watch is not None
    assert desk_now._seat.watch._begin_s is None, "its speed would fall for ever"
    user.say("two")
    roles = [(m.role, m.content) for m in session.asked[-1]]
    assert roles == [("user", "one"), ("assistant", part), ("user", "two")]


def test_stop_while_the_model_loads(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """Loading must end at once; the question stays, and the next click answers it."""
    session.holds_load = True
    user.say("one", waits=False)
    qtbot.waitUntil(lambda: "60" in chat.state.text)
    chat.composer.stop.click()
    user.wait()
    assert user.texts() == [("user", "one")]
    assert chat.state.text == ""
    assert chat.meter.speed.text() == "", "nothing is being stopped any more"
    session.holds_load = False
    chat.scene.resume_requested.emit()
    user.wait()
    assert user.texts()[-1] == ("assistant", ANSWER)


def test_conversation_can_be_left_while_it_is_answered(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """Nothing of the old answer may show up in the new chat; it is kept where it belongs."""
    session.gate.clear()
    user.say("one", waits=False)
    qtbot.waitUntil(lambda: len(user.texts()) == 2 and len(user.texts()[1][1]) > 20)
    chat.new.click()
    session.gate.set()
    user.settle()
    assert user.texts() == []
    assert not chat.scene.is_answering
    user.say("two")
    assert [m.content for m in session.asked[-1]] == ["two"]
    chat.history.list.itemActivated.emit(chat.history.list.item(1))
    user.settle()
    assert user.texts()[0] == ("user", "one")
    assert ANSWER.startswith(user.texts()[1][1])


def test_regenerate_adds_a_branch(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """Answering again must ask without the old answer, which stays and can be brought back."""
    user.say("one")
    session.answer = "another answer"
    chat.transcript.acted.emit("retry", chat.transcript.turns[-1].view)
    user.wait()
    assert [m.content for m in session.asked[-1]] == ["one"]
    assert user.texts()[-1][1] == "another answer"
    qtbot.waitUntil(lambda: heads(chat.transcript)[-1].place.text() == "2/2")
    heads(chat.transcript)[-1].back.click()
    qtbot.waitUntil(lambda: user.texts()[-1][1] == ANSWER)
    qtbot.waitUntil(lambda: heads(chat.transcript)[-1].place.text() == "1/2")


def test_edit_adds_a_branch(chat: ChatPage, session: FakeSession, user: User) -> None:
    """An edited question must be asked in place of the old one; giving up changes nothing."""
    user.say("one")
    QTest.keyClicks(chat.composer.field, "draft")
    chat.drafts.keep()
    chat.transcript.acted.emit("edit", chat.transcript.turns[0].view)
    assert chat.composer.field.toPlainText() == "one"
    chat.composer.give_up.click()
    assert chat.composer.field.toPlainText() == "draft"
    chat.transcript.acted.emit("edit", chat.transcript.turns[0].view)
    chat.composer.field.clear()
    user.say("uno")
    assert [m.content for m in session.asked[-1]] == ["uno"]
    assert [text for _, text in user.texts()] == ["uno", ANSWER]
    assert chat.transcript.turns[0].view.siblings == (1, 3)


def test_go_on_continues_in_the_same_turn(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """Continuing must hand the beginning to the engine and add to it."""
    session.answer = "begun"
    user.say("one")
    session.answer = " ended"
    chat.transcript.acted.emit("go_on", chat.transcript.turns[-1].view)
    user.wait()
    assert [(m.role, m.content) for m in session.asked[-1]] == [
        ("user", "one"), ("assistant", "begun"),
    ]  # fmt: skip
    assert user.texts()[-1] == ("assistant", "begun ended")


def test_deleted_turn_goes_with_what_follows(
    chat: ChatPage, session: FakeSession, user: User, guard: GuiGuard
) -> None:
    """After a yes the turn and its answer are gone, on the disk, too."""
    user.say("keep")
    user.say("forget the harbour")
    chat._ask_to_delete(3)
    box = chat.findChild(QMessageBox)
    assert isinstance(box, QMessageBox)
    box.button(box.StandardButton.Discard).click()
    user.settle()
    assert [text for _, text in user.texts()] == ["keep", ANSWER]
    with guard.paused():
        assert session.store().search_messages("harbour") == ()


def test_dead_engine_keeps_the_text_and_goes_on_with_one_click(
    chat: ChatPage, session: FakeSession, user: User
) -> None:
    """A crash must be said and keep what was written; one click goes on with it."""
    session.breaks = True
    user.say("one")
    assert chat.banner.text == "The engine ended. Restart."
    part = user.texts()[-1][1]
    assert part
    session.breaks = False
    session.answer = " and the rest"
    chat.banner._action.click()
    user.wait()
    assert session.asked[-1][-1].content == part
    assert user.texts()[-1][1] == part + " and the rest"


def test_model_that_does_not_load_is_said_and_can_be_tried_again(
    chat: ChatPage, session: FakeSession, user: User
) -> None:
    """The question must not be lost when the model could not be loaded."""
    session.problem = EnvironmentProblem("no_room", "There is no room.", "Close something.")
    user.say("one")
    assert "There is no room." in chat.banner.text
    assert user.texts() == [("user", "one")]
    session.problem = None
    chat.banner._action.click()
    user.wait()
    assert [m.content for m in session.asked[-1]] == ["one"]
    assert user.texts()[-1][1] == ANSWER


def test_model_without_template_is_said(chat: ChatPage, session: FakeSession, user: User) -> None:
    """Who chats with a base model must know why it answers oddly."""
    session.has_template = False
    user.say("one")
    assert "no chat template" in chat.banner.text


def test_preset_system_prompt_and_template_are_used(
    chat: ChatPage, session: FakeSession, user: User
) -> None:
    """A preset brings prompt and sampling; template and stop string reach the engine."""
    setup = chat.setup
    setup.preset.setCurrentIndex(setup.preset.findData("code"))
    setup.preset.activated.emit(setup.preset.currentIndex())
    setup.template.setCurrentIndex(setup.template.findData("chatml"))
    setup.stop.setText("<end>")
    user.say("one")
    system = session.asked[-1][0]
    assert (system.role, system.content[:6]) == ("system", "You ar")
    sampling, template, stop = session.asked_with[-1]
    assert sampling is not None
    assert (sampling.temperature, template, stop) == (0.2, "chatml", ("<end>",))


def test_reasoning_is_folded(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """What the model thought is a line that unfolds, and no part of the answer."""
    session.reasoning = "Perhaps a cache of keys."
    user.say("one")
    turn = chat.transcript.turns[-1]
    assert (turn.text, turn.reasoning) == (ANSWER, "Perhaps a cache of keys.")
    qtbot.waitUntil(lambda: not chat.transcript._rest.isActive())
    assert not any("Perhaps" in w.toPlainText() for w in text_blocks(chat.transcript))
    folds(chat.transcript)[0].button.click()
    qtbot.waitUntil(lambda: any("Perhaps" in w.toPlainText() for w in text_blocks(chat.transcript)))


def test_search_takes_the_memory_and_the_chat_goes_on_after(
    chat: ChatPage, late: LatePages, session: FakeSession, user: User, qtbot: QtBot
) -> None:
    """A search must not start beside a loaded chat, and the conversation must survive it."""
    user.say("one")
    late.wizard.start_quick("demo")
    qtbot.waitUntil(lambda: late.wizard.step == "result")
    assert session.n_unloads == 1
    user.say("two")
    assert [m.content for m in session.asked[-1]] == ["one", ANSWER, "two"]


def test_new_chat_forgets_and_keeps_the_model(
    chat: ChatPage, session: FakeSession, user: User
) -> None:
    """A new chat must not know the old one; the model needs not be loaded again."""
    user.say("one")
    chat.new.click()
    user.settle()
    assert user.texts() == []
    user.say("two")
    assert [m.content for m in session.asked[-1]] == ["two"]
    assert session.n_unloads == 0


def test_idle_model_is_unloaded_and_loaded_by_the_next_message(
    chat: ChatPage, session: FakeSession, user: User, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the idle time the memory is given back, which is said; asking loads it again."""
    monkeypatch.setattr(desk, "LOOK_S", 0.01)
    user.say("one")
    qtbot.waitUntil(lambda: "unloaded after 15\u00a0min idle" in chat.meter.speed.text())
    session.idle_left_s = 0.0
    qtbot.waitUntil(lambda: session.n_unloads == 1)
    qtbot.waitUntil(lambda: chat.state.text == "not loaded")
    assert "Nobody asked for a while" in chat.meter.speed.text()
    session.idle_left_s = 900.0
    user.say("two")
    assert user.texts()[-1] == ("assistant", ANSWER)


def test_full_disk_is_said_and_the_chat_goes_on(
    chat: ChatPage, session: FakeSession, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conversation that cannot be written must still be answered."""

    def full(*_: object, **__: object) -> None:
        raise EnvironmentProblem("disk_full", "The disk is full.", "Free some space.")

    monkeypatch.setattr(Store, "start_conversation", full)
    user.say("one")
    assert "Not saved: The disk is full." in chat.banner.text
    assert user.texts()[-1] == ("assistant", ANSWER)


def test_bad_template_gives_a_choice(chat: ChatPage, session: FakeSession, user: User) -> None:
    """What the self-test finds must be said, and the button leads to the choice."""
    session.checked = data.BAD_TEMPLATE
    user.say("one")
    assert "markers" in chat.banner.text
    assert "“<|im_end|>”" in chat.banner.text
    chat.banner._action.click()
    assert chat.setup.isVisible()


def test_message_is_copied(chat: ChatPage, user: User, qtbot: QtBot) -> None:
    """The copy button must give the text as it was written."""
    user.say("one")
    qtbot.waitUntil(lambda: not chat.transcript._rest.isActive())
    heads(chat.transcript)[-1].copy.click()
    assert QApplication.clipboard().text() == ANSWER


def test_tuned_profile_is_offered_first(
    chat: ChatPage, late: LatePages, window: MainWindow, user: User
) -> None:
    """Chatting from a result must choose that profile, by its name and speed."""
    late.wizard.chat_requested.emit(data.SPEC.path, "ab12")
    assert chat.picker.choice.profile_id == "ab12"
    assert chat.picker.currentText() == "Qwen2.5 7B Instruct · 39.4\u00a0tok/s"
    assert window.state.last_profile == "ab12"
    user.settle()
