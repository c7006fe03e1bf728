"""Parses the command line, runs one command, and turns errors into exit codes."""

import argparse
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from typing_extensions import override

from app.cli import (
    bench,
    chat,
    doctor,
    engine,
    estimate,
    export,
    inspect,
    models,
    power,
    probe,
    serve,
    tune,
)
from app.cli.output import (
    EXIT_BUG,
    EXIT_DONE,
    EXIT_PARTIAL,
    ErrorDocument,
    print_json,
    progress_console,
    report_problem,
)
from app.cli.power_options import tell_pending
from app.domain.errors import EnvironmentProblem, ErrorInfo, UsageProblem
from app.runtime import log_dir, version
from app.session import Probing, Session

ENDPOINT = re.compile(r"[^\s:]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")
COMMANDS = (
    probe,
    models,
    inspect,
    estimate,
    bench,
    tune,
    chat,
    serve,
    power,
    export,
    engine,
    doctor,
)


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are usage problems like our own: JSON when JSON was asked."""

    @override
    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the command line.

        Raises:
            UsageProblem: Always.
        """
        raise UsageProblem("usage", message, f"See {self.prog} --help.")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    parser = Parser(
        prog="rigtune",
        description="Find the best local-LLM settings for the GPU you already own.",
        epilog="Without a command the window opens.",
    )
    parser.add_argument("--version", action="version", version=f"rigtune {version()}")
    parser.add_argument(
        "--replay",
        dest="machine_replay",
        metavar="DIR",
        help="show a recorded machine instead of this one: window, probe, models, estimate"
        " (see rigtune probe --record)",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in COMMANDS:
        sub = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        sub.set_defaults(run=module.run)
        module.add_arguments(sub)
        add_common(sub, has_json=module is not export)
    return parser


def add_common(sub: argparse.ArgumentParser, *, has_json: bool) -> None:
    """Add what every command understands."""
    if has_json:
        sub.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    sub.add_argument(
        "--rpc",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="also use this llama.cpp RPC device (unauthenticated: trusted networks only)",
    )
    sub.add_argument("--engine-dir", metavar="DIR", help="use the llama.cpp libraries in DIR")


def run(argv: Sequence[str], probing: Probing) -> int:
    """Run the command in ``argv`` and return the exit code; without one, open the window."""
    fill_closed_streams()
    use_utf8()
    parser = build_parser()
    try:
        args = parser.parse_args(argv)
    except UsageProblem as problem:
        return report_problem(problem, as_json="--json" in argv)
    if args.command is None:
        return open_window(parser, args.machine_replay)
    as_json = bool(getattr(args, "json", False))
    try:
        return execute(args, probing)
    except EnvironmentProblem as problem:
        return report_problem(problem, as_json=as_json)
    except KeyboardInterrupt:
        return report_interrupt(as_json=as_json)
    except BrokenPipeError:
        return leave_stdout(EXIT_DONE)
    except OSError as error:
        return report_refusal(error, as_json=as_json)
    except Exception:  # noqa: BLE001 - top frame: a bug becomes a report, not a traceback
        return report_bug(as_json=as_json)


def execute(args: argparse.Namespace, probing: Probing) -> int:
    """Run the parsed command on a session of its own.

    Raises:
        UsageProblem: An endpoint is not HOST:PORT.
    """
    for endpoint in args.rpc:
        if not ENDPOINT.fullmatch(endpoint):
            raise UsageProblem("bad_endpoint", f"--rpc: {endpoint!r} is not HOST:PORT")
    session = Session(
        probing,
        replay=getattr(args, "machine_replay", None),
        rpc=tuple(args.rpc),
        engine_dir=args.engine_dir,
    )
    try:
        if args.command != power.NAME:
            tell_pending(session.power)
        return int(args.run(args, session))
    finally:
        session.close()


def open_window(parser: argparse.ArgumentParser, replay: str | None) -> int:
    """Start the window program and wait for it."""
    from app.cli.window import start

    return start(parser, replay)


def fill_closed_streams() -> None:
    """Put the null device where a standard stream was closed by whoever started us.

    Python has ``None`` there, and the next file opened would get the stream's number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - as long as we live
            setattr(sys, name, null)


def use_utf8() -> None:
    """Write UTF-8 whatever the console's code page; never die on an odd file name."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def report_interrupt(*, as_json: bool) -> int:
    """End as asked; ``--json`` promises a document even where nothing came of it."""
    if as_json:
        stopped = ErrorInfo(code="interrupted", message="Stopped before there was a result.")
        print_json(ErrorDocument(error=stopped))
    return EXIT_PARTIAL


def leave_stdout(code: int) -> int:
    """Give up what stdout could not take, so that Python does not try again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def report_refusal(error: OSError, *, as_json: bool) -> int:
    """Say what the system refused, on stderr where stdout is what it refused."""
    refused = EnvironmentProblem("system", f"The system refused something: {error}.")
    try:
        return report_problem(refused, as_json=as_json)
    except OSError:
        return leave_stdout(report_problem(refused, as_json=False))


def report_bug(*, as_json: bool) -> int:
    """Write the traceback to a report file and say where it is."""
    if as_json:
        print_json(ErrorDocument(error=ErrorInfo(code="bug", message="A bug in RigTune.")))
    console = progress_console()
    text = traceback.format_exc()
    path = log_dir() / "bug-report.txt"
    try:
        path.write_text(text, encoding="utf-8")
        console.print(f"[bold red]A bug in RigTune.[/] The report is in {path}")
    except OSError:
        console.print(text, markup=False)
    return EXIT_BUG
