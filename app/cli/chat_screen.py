"""What a chat in the terminal reads and writes: safe text, several lines, Ctrl-C."""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, ModuleType

from app.cli.output import EXIT_PARTIAL, progress_console
from app.domain.events import (
    ChatEvent,
    GenerationFinished,
    PromptProgress,
    SaveFailed,
    TokenGenerated,
    TrialProgress,
    TurnsDropped,
)
from app.domain.units import counted, format_seconds, format_tok_s

_BLOCK = '"""'
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
_LONG_PROMPT_TOK = 1024
_SCREENFUL_CHARS = 1500
# what moves the cursor, changes the screen, or turns text around
_UNSAFE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_UNSAFE |= {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
for _harmless in ("\n", "\t"):
    del _UNSAFE[ord(_harmless)]


def safe(text: str) -> str:
    """Return ``text`` with what could command the terminal spelt out."""
    return text.translate(_UNSAFE)


class Interrupts:
    """Turns signals into flags while an answer is written, so that nothing is torn apart.

    Attributes:
        came: Ctrl-C, or a request to end (SIGTERM).
        is_end: It was a request to end.
    """

    def __init__(self) -> None:
        """Start without one."""
        self.came = self.is_end = False

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Catch both inside the block; outside they are exceptions."""
        self.came = self.is_end = False
        with _handled(signal.SIGINT, self._note), _handled(signal.SIGTERM, self._note):
            yield

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.came = True
        self.is_end |= number == signal.SIGTERM


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """Have a request to end (SIGTERM) leave the block like an exception.

    What is written is saved, the model unloaded and every limit put back on the way out.
    """

    def leave(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(EXIT_PARTIAL)

    with _handled(signal.SIGTERM, leave):
        yield


@contextlib.contextmanager
def _handled(number: int, handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    try:
        before = signal.signal(number, handler)
    except ValueError:  # not the main thread: nothing to catch
        yield
        return
    try:
        yield
    finally:
        signal.signal(number, before)


def read_message(prompt: str = "> ", draft: str = "") -> str:
    r"""Read one message: a line, lines that end in ``\``, or a block between triple quotes.

    Args:
        prompt: Shown where somebody types.
        draft: Already written there, where ``fits_prompt``.

    Raises:
        EOFError: The input has ended.
        KeyboardInterrupt: Ctrl-C; what was typed is dropped.
    """
    shown = prompt if sys.stdin.isatty() else ""
    with _written(draft):
        line = input(shown)
    if line.strip().startswith(_BLOCK):
        return _read_block(line.strip()[len(_BLOCK) :])
    lines = []
    while line.endswith("\\"):
        lines.append(line[:-1])
        line = input("… " if shown else "")
    return "\n".join([*lines, line])


def fits_prompt(draft: str) -> bool:
    """Whether a draft can be written at the prompt: there is line editing, and room on a screen."""
    return _readline() is not None and len(draft) <= _SCREENFUL_CHARS


def remember(messages: Iterable[str]) -> None:
    """Let the up arrow bring back earlier messages, where the system has line editing.

    They come from the conversation itself: a history file would outlive a deleted one.
    """
    readline = _readline()
    if readline is not None:
        readline.clear_history()
        for message in messages:
            readline.add_history(message.replace("\n", " "))


def write_answer(
    events: Iterator[ChatEvent], interrupts: Interrupts | None = None
) -> tuple[str, GenerationFinished]:
    """Write an answer as it arrives; return its text and its end.

    Reasoning is dim. Ctrl-C, caught by ``interrupts``, stops the engine within one token.
    """
    show = _Show()
    end = GenerationFinished(reason="cancelled", n_prompt=0)
    for event in events:
        if isinstance(event, GenerationFinished):
            end = event
        else:
            show.event(event)
        if interrupts and interrupts.came:
            getattr(events, "close", lambda: None)()
            break
    show.finish()
    return show.text, end


def show_end(end: GenerationFinished) -> None:
    """Print the timings of an answer, or why it ended early."""
    console = progress_console()
    if end.error:
        console.print(f"{end.error.message} {end.error.hint}", style="red", markup=False)
        return
    if end.reason == "cancelled":
        console.print("(stopped)", style="dim", markup=False)
        return
    ttft = format_seconds(None if end.ttft_ms is None else end.ttft_ms / 1000)
    console.print(
        f"{counted(end.n_gen, 'token')}, first after {ttft}, {format_tok_s(end.decode_tok_s)}; "
        f"prompt {counted(end.n_prompt, 'token')} ({end.n_prompt_reused} re-used), "
        f"{format_tok_s(end.prefill_tok_s)}; ended by {end.reason}",
        style="dim",
        markup=False,
    )


class _Show:
    """Writes events as they come."""

    def __init__(self) -> None:
        self.text = ""
        self._is_dim = False
        self._can_dim = sys.stdout.isatty()
        self._console = progress_console()
        self._has_said_prompt = False

    def event(self, event: ChatEvent) -> None:
        match event:
            case TokenGenerated():
                self._token(event)
            case TurnsDropped(n_turns=n_turns, summary=summary):
                how = "summarised" if summary else "left out"
                turns = "the oldest turn is" if n_turns == 1 else f"the oldest {n_turns} turns are"
                self._say(f"(the context was full: {turns} {how})")
            case SaveFailed(error=error):
                self._say(f"(not saved: {error.message} {error.hint})")
            case TrialProgress(phase="start"):
                self._say_once("(loading the model again…)")
            case PromptProgress(n_done=n_done, n_prompt=n_prompt):
                if n_prompt - n_done > _LONG_PROMPT_TOK:
                    self._say(f"(reading the prompt: {n_done} of {n_prompt} tokens)")
            case _:
                pass

    def finish(self) -> None:
        self._dim(False)
        sys.stdout.write("\n")
        sys.stdout.flush()

    def _token(self, event: TokenGenerated) -> None:
        if not event.text:
            return
        is_thought = event.kind == "reasoning"
        if self._is_dim and not is_thought:
            sys.stdout.write("\n\n")
        self._dim(is_thought)
        if not is_thought:
            self.text += event.text
        sys.stdout.write(safe(event.text))
        sys.stdout.flush()

    def _dim(self, wanted: bool) -> None:  # noqa: FBT001 - private
        if wanted != self._is_dim:
            self._is_dim = wanted
            if self._can_dim:
                sys.stdout.write(_DIM if wanted else _PLAIN)

    def _say(self, text: str) -> None:
        sys.stdout.flush()
        self._console.print(text, style="dim", markup=False)

    def _say_once(self, text: str) -> None:
        if not self._has_said_prompt:
            self._has_said_prompt = True
            self._say(text)


@contextlib.contextmanager
def _written(draft: str) -> Iterator[None]:
    readline = _readline()
    if readline is None or not draft:
        yield
        return
    readline.set_startup_hook(lambda: readline.insert_text(draft))
    try:
        yield
    finally:
        readline.set_startup_hook()


def _readline() -> ModuleType | None:
    """Return the line editor of a terminal; a Windows console has its own, out of reach."""
    try:
        import readline
    except ImportError:
        return None
    return readline if sys.stdin.isatty() else None


def _read_block(first: str) -> str:
    if first.endswith(_BLOCK):
        return first[: -len(_BLOCK)]
    lines = [first] if first else []
    while True:
        line = input("… " if sys.stdin.isatty() else "")
        if line.rstrip().endswith(_BLOCK):
            lines.append(line.rstrip()[: -len(_BLOCK)])
            return "\n".join(lines).strip("\n")
        lines.append(line)
