"""SIGTERM to a running command: what was reached is kept, and no engine is left behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from app.cli.output import EXIT_DONE, EXIT_PARTIAL
from app.store import Store
from tests.fakes.chat_models import chat_model

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no polite request to end"),
]

REPOSITORY = Path(__file__).resolve().parents[3]
ENDLESS = 'root ::= "abc " root'
_PATIENCE_S = 60


class Command:
    """A command of ours that runs in its own home."""

    def __init__(self, home: Path, process: subprocess.Popen[str]) -> None:
        self.home = home
        self.process = process
        self.rest = ""

    def say(self, text: str) -> None:
        """Type a line."""
        assert self.process.stdin
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def wait_for(self, wanted: str, *, on_stderr: bool = False) -> None:
        """Read until ``wanted`` was printed."""
        pipe = self.process.stderr if on_stderr else self.process.stdout
        assert pipe
        seen = ""
        while wanted not in seen:
            letter = pipe.read(1)
            assert letter, f"the command ended after {seen!r}"
            seen += letter

    def end(self) -> int:
        """Ask it to end; return its exit code. Its workers must be gone by then."""
        workers = psutil.Process(self.process.pid).children(recursive=True)
        assert workers, "no engine ran"
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout
        self.rest = self.process.stdout.read()  # not communicate(): it forgets what was read ahead
        self.process.wait(_PATIENCE_S)
        _, alive = psutil.wait_procs(workers, timeout=_PATIENCE_S)
        assert not alive
        return self.process.returncode

    def store(self) -> Store:
        """Open what it has kept."""
        return Store.open(self.home / "data" / "rigtune.db")


@contextmanager
def running(home: Path, *arguments: str) -> Iterator[Command]:
    process = subprocess.Popen(
        [sys.executable, "-m", "app", *arguments],
        env=dict(os.environ, RIGTUNE_HOME=str(home), PYTHONPATH=str(REPOSITORY)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Command(home, process)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def talking(home: Path) -> Iterator[Command]:
    """Chat with a model that never comes to an end."""
    grammar = home / "endless.gbnf"
    grammar.write_text(ENDLESS, encoding="utf-8")
    model = str(chat_model(home / "tiny.gguf"))
    options = ("--grammar", str(grammar), "--overflow", "drop_oldest")
    with running(home, "chat", model, *options) as command:
        command.wait_for("stops an answer.\n")
        yield command


def test_chat_keeps_what_was_written(tmp_path: Path) -> None:
    """In the middle of an answer every letter on the screen is on the disk afterwards."""
    with talking(tmp_path) as command:
        command.say("what is it?")
        command.wait_for("abc " * 20)
        assert command.end() == EXIT_PARTIAL
        shown = "abc " * 20 + command.rest.rstrip()
    with closing(command.store()) as store:
        (conversation,) = store.conversations()
        question, answer = store.messages(conversation.id)[:2]
    assert question.content == "what is it?"
    assert answer.content.rstrip() == shown.rstrip()


def test_chat_that_waits_for_a_message_ends(tmp_path: Path) -> None:
    """At the prompt, too, the model is unloaded on the way out."""
    with talking(tmp_path) as command:
        command.say("/stats")
        command.wait_for("unloaded after")
        assert command.end() == EXIT_PARTIAL


def test_server_ends_in_order(tmp_path: Path) -> None:
    """As with Ctrl-C."""
    model = str(chat_model(tmp_path / "tiny.gguf"))
    with running(tmp_path, "serve", model) as command:
        command.wait_for("Ctrl-C stops the server.")
        assert command.end() == EXIT_DONE


def test_search_keeps_what_was_measured(tmp_path: Path) -> None:
    """The document says that it was stopped, and the finished trials are in the store."""
    model = str(chat_model(tmp_path / "tiny.gguf"))
    options = ("--json", "--progress", "jsonl")
    with running(tmp_path, "tune", model, *options) as command:
        command.wait_for('"trial.finished"', on_stderr=True)
        assert command.end() == EXIT_PARTIAL
    document = json.loads(command.rest)
    assert document["n_trials"] >= 1
    with closing(command.store()) as store:
        (sweep,) = store.sweeps()
        assert store.sweep(sweep.id).trials
