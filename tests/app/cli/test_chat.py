"""``rigtune chat``: what it reads, writes and keeps."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.chat.conversation import Conversation
from app.chat.overflow import Overflow
from app.chat.thread import Thread
from app.cli.chat_commands import Commands
from app.cli.chat_screen import Interrupts, read_message, safe, write_answer
from app.cli.main import run
from app.cli.output import EXIT_USAGE
from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.events import GenerationFinished
from app.store import Store
from probes import registry
from tests.fakes.chat_engine import ScriptedEngine
from tests.fakes.chat_models import chat_model, literal

REPOSITORY = Path(__file__).resolve().parents[3]


class Talk(ScriptedEngine):
    """A scripted engine with what commands ask of a chat."""

    template = ""
    is_running = True
    power = None

    def idle_left_s(self) -> None:
        """Never unload."""

    def choose_template(self, name: str) -> None:
        """Take the name of any template."""
        self.template = name

    def tokenize(self, text: str) -> int:
        """Return one token per word."""
        return len(text.split())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "rigtune.db") as opened:
        yield opened


@pytest.fixture
def commands(store: Store) -> Commands:
    engine = Talk("first", "second")
    conversation = Conversation(engine, thread=Thread(store))
    return Commands(engine, store, conversation)  # type: ignore[arg-type]


def typed(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return read_message()


# --- reading and writing ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("hello\n", "hello"),
        ("a\\\nb\\\nc\n", "a\nb\nc"),
        ('"""one\n\n two\n"""\n', "one\n\n two"),
        ('"""\na\nb"""\n', "a\nb"),
        ('"""a"""\n', "a"),
        ("\n", ""),
    ],
)
def test_messages_of_one_and_of_several_lines(
    keys: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines, continued lines and blocks."""
    assert typed(keys, monkeypatch) == message


def test_end_of_input_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed pipe ends the chat instead of hanging."""
    with pytest.raises(EOFError):
        typed("", monkeypatch)
    with pytest.raises(EOFError):
        typed('"""never closed\n', monkeypatch)


def test_answers_cannot_command_the_terminal() -> None:
    """Escape sequences and text turned around are spelt out; other text is left alone."""
    assert safe("\x1b]0;title\x07\r\u202eabc\x9b1m") == "\\x1b]0;title\\x07\\x0d\\u202eabc\\x9b1m"
    harmless = "Grüße\t🙂\n\u200f\u05e9\u05dc"
    assert safe(harmless) == harmless


def test_answer_is_written_as_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    """Reasoning is shown but is no part of the answer."""
    conversation = Conversation(ScriptedEngine("yes \x1b[2J", reasoning="hm"))
    text, end = write_answer(conversation.ask("x"))
    assert text == "yes \x1b[2J"
    assert end.reason == "stop"
    assert capsys.readouterr().out == "hm\n\nyes \\x1b[2J\n"


def test_ctrl_c_stops_the_answer_only() -> None:
    """The signal becomes a flag, the engine is stopped, and what came is kept."""
    engine = ScriptedEngine("one two three")
    engine.on_word = lambda: signal.raise_signal(signal.SIGINT)
    conversation = Conversation(engine)
    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)  # ignored in a shell's background
    with interrupts.caught():
        text, end = write_answer(conversation.ask("x"), interrupts)
    assert (text, end.reason) == ("one", "cancelled")
    assert engine.is_closed
    assert conversation.thread.turns[-1].content == "one"
    assert signal.getsignal(signal.SIGINT) is before


# --- commands --------------------------------------------------------------------------------


def test_regen_edit_and_continue_answer(commands: Commands) -> None:
    """Commands that ask the model return the answer to stream."""
    list(commands.conversation.ask("x"))
    for line in ("/regen", "/edit y", "/continue"):
        events = commands.run(line)
        assert events is not None
        assert isinstance(list(events)[-1], GenerationFinished)
    assert [t.content for t in commands.conversation.thread.turns] == ["y", "secondsecond"]


def test_save_load_and_list(
    commands: Commands, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A conversation can be written, left, found and opened again."""
    list(commands.conversation.ask("what about tides?"))
    for name in ("chat.md", "chat.json"):
        commands.run(f"/save {tmp_path / name}")
    assert "tides" in (tmp_path / "chat.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "chat.json").read_bytes())["turns"]
    number = commands.conversation.thread.id
    commands.run("/new")
    assert not commands.conversation.thread.turns
    commands.run("/list tides")
    commands.run("/list")
    assert capsys.readouterr().out.count("what about tides?") == 3
    commands.run(f"/load {number}")
    assert commands.conversation.thread.turns[0].content == "what about tides?"


def test_branches_are_shown_and_switched(
    commands: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another answer is a version; either can be brought back by its number."""
    list(commands.conversation.ask("hello"))
    with pytest.raises(UsageProblem, match="one version"):
        commands.run("/branch")
    list(commands.run("/regen") or ())
    commands.run("/branch")
    assert "Version 2 of 2: second" in capsys.readouterr().out
    commands.run("/branch 1")
    assert commands.conversation.thread.turns[-1].content == "first"
    for wrong in ("0", "3", "x", "²"):
        with pytest.raises(UsageProblem):
            commands.run(f"/branch {wrong}")


def test_delete_takes_the_conversation_from_the_disk(commands: Commands, store: Store) -> None:
    """Nothing of it is left in the database's files."""
    list(commands.conversation.ask("secretword"))
    commands.run("/delete")
    assert store.conversations() == ()
    for path in store.path.parent.glob(store.path.name + "*"):
        assert b"secretword" not in path.read_bytes()


def test_settings_of_a_conversation(
    commands: Commands, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """System prompt, preset, overflow and template are taken and shown."""
    list(commands.conversation.ask("x"))
    commands.run("/system be brief")
    assert store.conversation(commands.conversation.thread.id or 0).system == "be brief"
    commands.run("/preset code")
    assert commands.conversation.sampling
    commands.run("/overflow")
    assert "When the context is full: stop" in capsys.readouterr().out
    commands.run("/overflow drop_oldest")
    assert commands.conversation.overflow is Overflow.DROP_OLDEST
    commands.run("/template chatml")
    assert commands.chat.template == "chatml"
    commands.run("/template model")
    assert commands.chat.template == ""
    commands.run("/quit")
    assert commands.is_over


def test_attached_file_goes_with_the_next_message(
    commands: Commands, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tokens are told first, and it is sent once."""
    path = tmp_path / "notes.txt"
    path.write_text("three little words", encoding="utf-8")
    commands.run(f"/attach {path}")
    assert "3 tokens" in capsys.readouterr().out
    assert "three little words" in commands.message("look")
    assert commands.message("look") == "look"


def test_message_that_does_not_fit_waits_with_its_files(
    commands: Commands, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It comes back as typed, a file is attached again, and /draft sends both once."""
    path = tmp_path / "notes.txt"
    path.write_text("words " * 3000, encoding="utf-8")
    commands.run(f"/attach {path}")
    assert commands.take_back() == ""
    list(commands.conversation.ask(commands.message("sum it up")))
    assert commands.take_back() == "sum it up"
    assert not commands.conversation.thread.turns
    commands.chat.n_ctx = 10_000  # type: ignore[attr-defined]
    list(commands.run("/draft") or ())
    sent = commands.conversation.thread.turns[0].content
    assert sent.startswith("File notes.txt:")
    assert sent.endswith("sum it up")
    assert commands.take_back() == ""
    assert commands.message("next") == "next"
    with pytest.raises(UsageProblem, match="no draft"):
        commands.run("/draft")


def test_edit_that_does_not_fit_comes_back_as_a_command(commands: Commands) -> None:
    """Sent as a message it would be something else."""
    list(commands.conversation.ask(commands.message("short")))
    list(commands.run("/edit " + "x" * 20_000) or ())
    assert commands.take_back() == "/edit " + "x" * 20_000
    assert [t.content for t in commands.conversation.thread.turns] == ["short", "first"]


@pytest.mark.parametrize(
    "line",
    ["/bogus", "/", "/load x", "/load 99", "/save", "/attach", "/attach /no/such/file",
     "/preset none", "/preset", "/overflow maybe", "/edit y", "/save /no/such/folder/x.md"],
)  # fmt: skip
def test_commands_that_cannot_be_done_say_why(commands: Commands, line: str) -> None:
    """A wrong command is a sentence, and the conversation goes on."""
    with pytest.raises(EnvironmentProblem) as caught:
        for _ in commands.run(line) or ():
            pass
    assert caught.value.info.message


def test_empty_edit_is_refused(commands: Commands) -> None:
    """An empty message replaces nothing."""
    list(commands.conversation.ask("x"))
    with pytest.raises(UsageProblem):
        list(commands.run("/edit ") or ())
    assert "" not in [t.content for t in commands.conversation.thread.every_turn()]


# --- the whole program -----------------------------------------------------------------------


def rigtune(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "app", "chat", *arguments]


def environment(home: Path) -> dict[str, str]:
    return dict(os.environ, RIGTUNE_HOME=str(home), PYTHONPATH=str(REPOSITORY))


@pytest.mark.engine
def test_one_answer_as_json(tmp_path: Path) -> None:
    """One document: text, reasoning, timings, settings."""
    model = chat_model(tmp_path / "tiny.gguf")
    grammar = tmp_path / "answer.gbnf"
    grammar.write_text(literal("<think>hm</think>yes"), encoding="utf-8")
    command = rigtune(tmp_path, str(model), "--prompt", "x", "--json", "--grammar", str(grammar))
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, check=True)
    document = json.loads(done.stdout)
    assert document["schema"] == "rigtune.chat/1"
    assert (document["text"], document["reasoning"]) == ("yes", "hm")
    assert document["reason"] == "stop"
    assert document["template"]


def test_json_without_a_prompt_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A conversation is no single document; one document says so."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))
    assert run(["chat", "demo", "--json"], registry) == EXIT_USAGE
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "json_of_conversation"


@pytest.mark.parametrize(
    "options",
    [
        ("--max-tokens", "0"),
        ("--prompt", "x", "--conversation", "1"),
        ("--temperature", "nan"),
        ("--top-p", "5"),
        ("--top-k", "99999999999999"),
        ("--repeat-penalty", "0"),
        ("--prompt", " "),
        ("--stop", ""),
        ("--conversation", "99"),
        ("--seed", "-1"),
        ("--seed", "4294967295"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
) -> None:
    """Before anything is loaded: no settings are looked for, so nothing of them is said."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))
    assert run(["chat", "demo", *options], registry) == EXIT_USAGE
    assert "profile" not in capsys.readouterr().err


def test_choices_are_named_as_they_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong choice lists words, not the program's insides."""
    for words in (["power", "--mode", "x"], ["chat", "demo", "--overflow", "x"]):
        assert run(words, registry) == EXIT_USAGE
        assert "<" not in capsys.readouterr().err


@pytest.mark.parametrize("port", ["65536", "-1"])
def test_port_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    """A slip of the fingers is a usage error, before anything loads."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))
    assert run(["serve", "demo", "--port", port], registry) == EXIT_USAGE


@pytest.mark.engine
def test_killed_in_the_middle_the_text_is_kept(tmp_path: Path) -> None:
    """After kill -9 what was on the screen two seconds ago is in the database."""
    model = chat_model(tmp_path / "tiny.gguf")
    grammar = tmp_path / "endless.gbnf"
    grammar.write_text('root ::= "abc " root', encoding="utf-8")  # never at its end
    arguments = (str(model), "--grammar", str(grammar), "--overflow", "drop_oldest")
    process = subprocess.Popen(
        rigtune(tmp_path, *arguments),
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write("what is it?\n/quit\n")
    process.stdin.flush()
    process.stdout.readline()
    database = tmp_path / "data" / "rigtune.db"
    with closing(Store.open(database)) as store:
        while process.stdout.read(4):
            kept = [m for c in store.conversations() for m in store.messages(c.id)]
            if len(kept) > 1 and "abc abc" in kept[-1].content:
                break
    process.kill()
    process.communicate()
    with closing(Store.open(database)) as store:
        (conversation,) = store.conversations()
        question, *answers = store.messages(conversation.id)
        assert question.content == "what is it?"
        assert answers[0].content.startswith("abc abc")
        assert answers[0].timing is None
        opened = Thread.open(store, conversation.id)
        assert opened.turns[-1].role == "assistant"
