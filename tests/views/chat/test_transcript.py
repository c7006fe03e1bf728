"""The transcript: huge conversations cost what is in sight, and what is read stays in place."""

import sys
from collections import Counter
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.fakes.gui_guard import GuiGuard
from tests.views.chat.conftest import heads, text_blocks
from views.chat.blocks import CodeBlock, TextBlock
from views.chat.transcript import Transcript
from views.chat.turns import TurnView
from views.colors import Scheme
from views.widgets import Kit

PARAGRAPH = "The quick brown fox jumps over the lazy dog, and *again* it does. " * 6
ANSWER = f"{PARAGRAPH}\n\n```python\nfor n in range(10):\n    print(n)\n```\n\n{PARAGRAPH}\n"


@pytest.fixture
def transcript(kit: Kit, qtbot: QtBot, guard: GuiGuard) -> Transcript:
    """Return an empty transcript, shown and watched."""
    view = Transcript(kit)
    qtbot.addWidget(view)
    view.resize(640, 400)
    view.show()
    qtbot.waitExposed(view)
    guard.is_armed = True
    return view


def turns(n: int) -> list[TurnView]:
    """Return ``n`` turns of question and answer."""
    roles = ("user", "assistant")
    return [
        TurnView(id=i, role=roles[i % 2], content=ANSWER if i % 2 else f"Question {i}?")
        for i in range(n)
    ]


def grow(view: Transcript) -> None:
    """Let 20 batches of an answer arrive, drawn one by one."""
    for _ in range(20):
        view.append("and goes on ")
        view.viewport().repaint()


def calls_of(work: Callable[[], None]) -> int:
    """Return how many functions ``work`` calls, those of Qt and of Python's own included."""
    kinds: Counter[str] = Counter()
    sys.setprofile(lambda _frame, kind, _what: kinds.update([kind]))
    try:
        work()
    finally:
        sys.setprofile(None)
    return kinds["call"] + kinds["c_call"]


def settled(view: Transcript, qtbot: QtBot) -> None:
    """Wait until every row in sight is made."""
    qtbot.waitUntil(lambda: not view._rest.isActive())


def test_hundred_thousand_tokens_cost_what_is_in_sight(
    transcript: Transcript, qtbot: QtBot
) -> None:
    """400 kB of text: few widgets at any place, and no event holds the window (guarded)."""
    transcript.show_turns(turns(900))
    assert sum(len(t.text) for t in transcript.turns) > 380_000
    settled(transcript, qtbot)
    bar = transcript.verticalScrollBar  # asked for anew: the binding may drop one that is kept
    assert bar().value() == bar().maximum()
    for place in range(0, 100, 7):
        bar().setValue(bar().maximum() * place // 100)
        settled(transcript, qtbot)
        assert len(transcript._widgets) < 80
        qtbot.wait(1)
    bar().setValue(0)
    settled(transcript, qtbot)
    assert text_blocks(transcript)[0].toPlainText() == "Question 0?"


def test_one_turn_of_a_megabyte(transcript: Transcript, qtbot: QtBot) -> None:
    """A pasted megabyte without an end of line must scroll, too."""
    transcript.show_turns([TurnView(id=1, role="user", content="word " * 200_000)])
    settled(transcript, qtbot)
    transcript.verticalScrollBar().setValue(0)
    settled(transcript, qtbot)
    assert text_blocks(transcript)[0].toPlainText().startswith("word word")


def test_reader_is_left_where_they_read(transcript: Transcript, qtbot: QtBot) -> None:
    """While an answer grows below, what is in sight must not move."""
    transcript.show_turns(turns(20))
    settled(transcript, qtbot)
    bar = transcript.verticalScrollBar  # asked for anew each time
    bar().setValue(bar().maximum() // 3)
    settled(transcript, qtbot)
    seen = transcript._first_seen()
    assert seen is not None
    before = transcript._widgets[seen].y()
    bar_before = bar().value()
    transcript.turns[-1].is_growing = True
    for _ in range(30):
        transcript.append("more text\n\n")
    assert transcript._widgets[seen].y() == before
    assert bar().value() == bar_before


def test_answer_is_followed_while_the_end_is_in_sight(transcript: Transcript, qtbot: QtBot) -> None:
    """Streaming must keep the newest line in sight, and be drawn the same as when reopened."""
    transcript.show_turns(turns(2))
    transcript.begin(continues=False)
    for at in range(0, len(ANSWER), 7):
        transcript.append(ANSWER[at : at + 7])
        bar = transcript.verticalScrollBar
        assert bar().value() == bar().maximum()
    transcript.end()
    settled(transcript, qtbot)
    streamed = [(b.toPlainText(), b.toHtml()) for b in text_blocks(transcript)]
    view = transcript.turns[-1]
    final = [*turns(2), TurnView(id=9, role="assistant", content=view.text)]
    transcript.show_turns([])
    transcript.show_turns(final)
    settled(transcript, qtbot)
    again = [(b.toPlainText(), b.toHtml()) for b in text_blocks(transcript)]
    assert again[-2:] == streamed[-2:]


def test_growing_answer_costs_the_same_below_a_long_conversation(
    transcript: Transcript, qtbot: QtBot
) -> None:
    """A token must cost what its own row costs, not a look at every row above it (counted)."""
    calls = []
    for n in (4, 400):
        transcript.show_turns(turns(n))
        transcript.begin(continues=False)
        transcript.append("It begins. ")
        settled(transcript, qtbot)
        calls.append(calls_of(lambda: grow(transcript)))
    assert calls[1] < 1.2 * calls[0]


def test_finished_parts_are_left_alone_while_more_comes(
    transcript: Transcript, qtbot: QtBot
) -> None:
    """Each batch is one change of the newest text; Markdown is made of a part only once."""
    transcript.begin(continues=False)
    for _ in range(3):
        transcript.append(f"{PARAGRAPH * 4}\n\n")
    transcript.append("And more")
    settled(transcript, qtbot)
    changes: list[int] = []
    blocks = text_blocks(transcript)
    for index, block in enumerate(blocks):
        block.document().contentsChange.connect(lambda *_, index=index: changes.append(index))
    for _ in range(20):
        transcript.append(" and more")
    assert len(blocks) >= 2
    assert changes == [len(blocks) - 1] * 20


@pytest.mark.parametrize("text", ["some words", "x\n\n```py\ncode = 1"])
def test_selection_does_not_grow_with_the_answer(transcript: Transcript, text: str) -> None:
    """What the user selected up to the end is what they copy, whatever came since."""
    transcript.begin(continues=False)
    transcript.append(text)
    block = transcript._in_order()[-1]
    assert isinstance(block, TextBlock | CodeBlock)
    edit = block.text if isinstance(block, CodeBlock) else block
    edit.selectAll()
    selected = edit.textCursor().selectedText()
    transcript.append(" and more")
    assert edit.toPlainText().endswith(" and more")
    assert edit.textCursor().selectedText() == selected


def test_bar_that_comes_into_sight_takes_its_width(transcript: Transcript, qtbot: QtBot) -> None:
    """The row that made the transcript higher than its area must be as wide as one made anew."""
    transcript.begin(continues=False)
    while not transcript.verticalScrollBar().maximum():
        transcript.append("word " * 10)
    transcript.append("word " * 10)
    settled(transcript, qtbot)
    row = transcript._rows[-1]
    assert row.width == transcript._width() == transcript._widgets[row].width()
    assert row.height == transcript._widgets[row].fit(row.width)


def test_code_has_a_copy_button_for_the_whole_block(transcript: Transcript, qtbot: QtBot) -> None:
    """A block that is cut for drawing must be copied whole."""
    code = "\n".join(f"x{n} = {n}" for n in range(2000))
    transcript.show_turns([TurnView(id=1, role="assistant", content=f"Here:\n```py\n{code}\n```")])
    settled(transcript, qtbot)
    transcript.verticalScrollBar().setValue(0)
    settled(transcript, qtbot)
    block = next(w for w in transcript._in_order() if isinstance(w, CodeBlock))
    assert block.button is not None
    block.button.click()
    assert QApplication.clipboard().text() == code


def test_answer_cannot_fetch_anything(transcript: Transcript, qtbot: QtBot) -> None:
    """A picture in an answer must not make the window read a file or the network."""
    text = "![x](file:///etc/hostname) <b>not html</b> \u202eturned\0"
    transcript.show_turns([TurnView(id=1, role="assistant", content=text)])
    settled(transcript, qtbot)
    shown = text_blocks(transcript)[0].toPlainText()
    assert "<b>not html</b>" in shown
    assert "<U+202E>turned\u2400" in shown


def test_formula_stays_readable(transcript: Transcript, qtbot: QtBot) -> None:
    """Neither inline nor displayed maths may lose a character to Markdown."""
    text = "With $a_1*b_2*c$ we get\n\n\\[\n x^{2}_{1}\n\\]\n"
    transcript.show_turns([TurnView(id=1, role="assistant", content=text)])
    settled(transcript, qtbot)
    texts = [w.toPlainText() for w in text_blocks(transcript)]
    assert texts == ["With $a_1*b_2*c$ we get"]
    block = next(w for w in transcript._in_order() if isinstance(w, CodeBlock))
    assert block.button is not None
    assert block.text.toPlainText() == "\\[\n x^{2}_{1}\n\\]"


def test_keyboard_reaches_every_part(transcript: Transcript, qtbot: QtBot) -> None:
    """Home and End scroll; Tab goes through the buttons from top to bottom."""
    transcript.show_turns(turns(12))
    settled(transcript, qtbot)
    QTest.keyClick(transcript, Qt.Key.Key_Home)
    settled(transcript, qtbot)
    assert transcript.verticalScrollBar().value() == 0
    first, second = heads(transcript)[:2]
    first.copy.setFocus()
    QTest.keyClick(first.copy, Qt.Key.Key_Tab)
    assert first.more.hasFocus()
    QTest.keyClick(first.more, Qt.Key.Key_Tab)
    assert second.copy.hasFocus()
    QTest.keyClick(transcript, Qt.Key.Key_End)
    settled(transcript, qtbot)
    bar = transcript.verticalScrollBar
    assert bar().value() == bar().maximum()


def test_look_changes_with_the_window(transcript: Transcript, kit: Kit, qtbot: QtBot) -> None:
    """Code must be readable in the dark look, also where it was drawn in the light one."""
    transcript.show_turns(turns(2))
    settled(transcript, qtbot)
    before = next(w for w in transcript._in_order() if isinstance(w, CodeBlock))
    with qtbot.waitSignal(kit.theme.changed):  # a shown window takes the look in slices
        kit.theme.choose(Scheme.DARK)
    settled(transcript, qtbot)
    after = next(w for w in transcript._in_order() if isinstance(w, CodeBlock))
    assert after is not before
    assert isinstance(text_blocks(transcript)[0], TextBlock)
