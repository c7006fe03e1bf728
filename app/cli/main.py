"""Parses the command line, runs one command, and turns errors into exit codes."""

import argparse
import sys
import traceback
from collections.abc import Sequence

from app.cli import bench, chat, doctor, estimate, export, inspect, models, probe, serve, tune
from app.cli.output import EXIT_BUG, EXIT_DONE, EXIT_PARTIAL, progress_console, report_problem
from app.domain.errors import EnvironmentProblem
from app.runtime import log_dir, version
from app.session import Probing, Session

COMMANDS = (probe, models, inspect, estimate, bench, tune, chat, serve, export, doctor)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    parser = argparse.ArgumentParser(
        prog="rigtune",
        description="Find the best local-LLM settings for the GPU you already own.",
    )
    parser.add_argument("--version", action="version", version=f"rigtune {version()}")
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
    use_utf8()
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.command is None:
        return open_window(parser)
    as_json = bool(getattr(args, "json", False))
    session = Session(
        probing,
        replay=getattr(args, "machine_replay", None),
        rpc=tuple(args.rpc),
        engine_dir=args.engine_dir,
    )
    try:
        code = args.run(args, session)
    except EnvironmentProblem as problem:
        return report_problem(problem, as_json=as_json)
    except KeyboardInterrupt:
        return EXIT_PARTIAL
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_DONE
    except Exception:  # noqa: BLE001 - top frame: a bug becomes a report, not a traceback
        return report_bug()
    finally:
        session.close()
    return int(code)


def open_window(parser: argparse.ArgumentParser) -> int:
    """Start the window program and wait for it."""
    from app.cli.window import start

    return start(parser)


def use_utf8() -> None:
    """Write UTF-8 whatever the console's code page; never die on an odd file name."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def report_bug() -> int:
    """Write the traceback to a report file and say where it is."""
    console = progress_console()
    text = traceback.format_exc()
    path = log_dir() / "bug-report.txt"
    try:
        path.write_text(text, encoding="utf-8")
        console.print(f"[bold red]A bug in RigTune.[/] The report is in {path}")
    except OSError:
        console.print(text, markup=False)
    return EXIT_BUG
