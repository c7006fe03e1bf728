"""Where a command writes: one JSON document or human text on stdout, progress on stderr."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from typing_extensions import override

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.record import Record
from app.domain.units import NBSP

PIPE_WIDTH = 160
EXIT_DONE = 0
EXIT_USAGE = 2
EXIT_PROBLEM = 3
EXIT_PARTIAL = 4
EXIT_BUG = 70


class ErrorDocument(Record, frozen=True, kw_only=True):
    """What ``--json`` prints instead of an answer."""

    error: ErrorInfo


class PlainConsole(Console):
    """A console that leaves a reader who went away to the caller.

    Rich's own answer is to close stdout, whichever stream broke, and to exit with 1.
    """

    @override
    def on_broken_pipe(self) -> None:
        """Pass the error on.

        Raises:
            BrokenPipeError: Always.
        """
        raise BrokenPipeError


class ProgressConsole(PlainConsole):
    """A console for progress: where nobody can read it any more, the work goes on in silence."""

    @override
    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does; a full disk or a reader who left ends the talking, nothing else."""
        try:
            super().print(*objects, **options)
        except OSError:
            self.quiet = True


def human() -> Console:
    """Return the console for human text (stdout)."""
    # a pipe has no width: tables are then as wide as they need to be
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return PlainConsole(highlight=False, soft_wrap=width is not None, width=width)


def progress_console() -> Console:
    """Return the console for progress and errors (stderr)."""
    return ProgressConsole(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def print_json(document: object) -> None:
    """Print exactly one JSON document on stdout, UTF-8 whatever the locale."""
    sys.stdout.flush()
    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def report_problem(problem: EnvironmentProblem, *, as_json: bool) -> int:
    """Show a problem the user can act on and return its exit code."""
    if as_json:
        print_json(ErrorDocument(error=problem.info))
    else:
        console = progress_console()
        console.print(f"[bold red]Error:[/] {escape(problem.info.message)}")
        if problem.info.hint:
            console.print(escape(problem.info.hint))
    return problem.exit_code


def escape(text: str) -> str:
    """Return ``text`` safe from rich's markup and without control or bidi characters.

    Names come from files: an escape sequence in one must not reach the terminal.
    """
    printable = "".join(c if c.isprintable() or c == NBSP else "\ufffd" for c in text)
    return printable.replace("[", r"\[")


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> Table:
    """Return a plain table; the first column is text, the others are right-aligned."""
    result = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for index, header in enumerate(headers):
        result.add_column(header, justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows:
        result.add_row(*(escape(cell) for cell in row))
    return result
