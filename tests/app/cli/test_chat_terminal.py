"""``rigtune chat`` in a real terminal: line editing, history, several lines, Ctrl-C."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fakes.chat_models import chat_model

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals like this"),
]
REPOSITORY = Path(__file__).resolve().parents[3]
PATIENCE_S = 240.0
_AGAIN_S = 2.0
UP, INTERRUPT, CLEAR_LINE, END = "\x1b[A", "\x03", "\x15", "\x04"
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A program on a pseudo-terminal, and somebody who types."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        """Start the program."""
        import pty  # not on Windows

        self._own, theirs = pty.openpty()
        self.process = subprocess.Popen(
            command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, preexec_fn=lambda: _take(theirs),  # noqa: PLW1509 - nothing locks in it
        )  # fmt: skip
        os.close(theirs)
        self._seen = ""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._own, text.encode())

    def wait_for(self, text: str, press: str = "") -> str:
        """Read until ``text`` shows up; return what came since the last time.

        ``press`` is a key pressed now, and again while nothing comes: Python's line editor drops a
        Ctrl-C that arrives between its prompt and its wait for a key.
        """
        end = time.monotonic() + PATIENCE_S
        while text not in self._seen:
            left = end - time.monotonic()
            assert left > 0, f"{text!r} never came, but {self._seen!r}"
            if press:
                self.type(press)
                left = min(left, _AGAIN_S)
            while text not in self._seen and select.select([self._own], [], [], left)[0]:
                data = os.read(self._own, 65536).decode(errors="replace")
                self._seen += _CONTROLS.sub("", data)
        before, _, self._seen = self._seen.partition(text)
        return before + text

    def close(self) -> None:
        """End the program."""
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self._own)


def _take(descriptor: int) -> None:
    """Make the terminal the child's own, so that Ctrl-C reaches it, also out of the background."""
    import fcntl
    import termios

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Return a chat with a model that never stops saying ``abc``."""
    model = chat_model(tmp_path / "tiny.gguf")
    grammar = tmp_path / "endless.gbnf"
    grammar.write_text('root ::= "abc " root', encoding="utf-8")
    command = [sys.executable, "-m", "app", "chat", str(model), "--grammar", str(grammar),
               "--overflow", "drop_oldest"]  # fmt: skip
    environment = dict(
        os.environ, RIGTUNE_HOME=str(tmp_path / "home"), PYTHONPATH=str(REPOSITORY), TERM="xterm"
    )
    opened = Terminal(command, environment)
    yield opened
    opened.close()


def test_conversation_in_a_terminal(terminal: Terminal) -> None:
    """Ctrl-C stops the answer and not the chat; the up arrow brings the message back."""
    terminal.wait_for("> ")
    terminal.type("hello there\n")
    terminal.wait_for("abc abc")
    terminal.type(INTERRUPT)
    terminal.wait_for("(stopped)")
    terminal.wait_for("> ")
    terminal.type(UP)
    terminal.wait_for("hello there")
    terminal.type(CLEAR_LINE + "first line\\\n")
    terminal.wait_for("… ")
    terminal.type("second line\n")
    terminal.wait_for("abc abc")
    terminal.type(INTERRUPT)
    terminal.wait_for("(stopped)")
    terminal.wait_for("> ")
    terminal.type("/list\n")
    assert "hello there" in terminal.wait_for("> ").removeprefix("/list")
    terminal.type("/nonsense\n")
    terminal.wait_for("There is no command /nonsense.")
    terminal.wait_for("> ")
    terminal.wait_for("ends)", press=INTERRUPT)  # at the prompt it ends nothing either
    terminal.type("/quit\n")
    assert terminal.process.wait(PATIENCE_S) == 0


def test_message_that_does_not_fit_is_at_the_prompt_again(terminal: Terminal) -> None:
    """What was typed is not lost and can be changed; the conversation does not know it."""
    terminal.wait_for("> ")
    terminal.type(f"/system {'s' * 3500}\n")  # of a context of 4096 tokens, a letter each
    terminal.wait_for("System prompt: ")
    terminal.wait_for("> ")
    terminal.type("far too long " * 60 + "end\n")
    terminal.wait_for("(not sent; it is at the prompt again)")
    terminal.wait_for("far too long end")
    terminal.type(CLEAR_LINE + "short\n")
    terminal.wait_for("abc abc")
    terminal.type(INTERRUPT)
    terminal.wait_for("(stopped)")
    terminal.wait_for("> ")
    terminal.type("/list\n")
    assert "far too long" not in terminal.wait_for("> ").removeprefix("/list")
    terminal.type('"""\n' + "line of a message\n" * 100 + '"""\n')
    terminal.wait_for("(not sent; /draft sends it again)")
    terminal.wait_for("> ")
    terminal.type("/draft\n")  # it is no shorter than before
    terminal.wait_for("(not sent; /draft sends it again)")


def test_end_of_input_ends_the_chat(terminal: Terminal) -> None:
    """Ctrl-D on an empty line is a way out."""
    terminal.wait_for("> ")
    terminal.type(END)
    assert terminal.process.wait(PATIENCE_S) == 0
