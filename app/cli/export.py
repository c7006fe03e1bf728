"""``rigtune export``: a stored profile as another program's command or file."""

import argparse
import sys

from app.cli.output import EXIT_DONE
from app.export import FORMATS
from app.session import Session

NAME = "export"
HELP = "print a profile as a command or file of another program"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("profile", metavar="PROFILE", help="profile id from tune")
    parser.add_argument("--format", choices=tuple(FORMATS), required=True)


def run(args: argparse.Namespace, session: Session) -> int:
    """Print the export."""
    text = session.export(args.profile, args.format)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return EXIT_DONE
