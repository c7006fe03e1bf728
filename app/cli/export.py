"""``rigtune export``: a stored profile as another program's command or file."""

import argparse
import sys

from app.cli.output import EXIT_DONE, escape, progress_console
from app.export import FORMATS, render
from app.session import Session

NAME = "export"
HELP = "print a profile as a command or file of another program"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("profile", metavar="PROFILE", help="profile id from tune")
    parser.add_argument("--format", choices=tuple(FORMATS), required=True, help="for which program")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print the export on stdout, and what the program cannot be told on stderr."""
    exported = render(session.profile(args.profile), args.format)
    text = exported.text
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    console = progress_console()
    if exported.file_name:
        console.print(f"Name of the file: {escape(exported.file_name)}")
    for note in exported.notes:
        console.print(f"• {escape(note)}")
    return EXIT_DONE
