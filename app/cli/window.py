"""Starts the window program from the command line."""

import argparse
import subprocess

from app.cli.output import progress_console
from app.domain.errors import EnvironmentProblem
from app.runtime import has_display, sibling_command, sibling_environment


def start(parser: argparse.ArgumentParser, replay: str | None = None) -> int:
    """Start the window and wait for it; without a display print the help instead.

    Args:
        parser: For the help.
        replay: Folder of a recorded machine to show.

    Raises:
        EnvironmentProblem: The window program is not part of this installation.
    """
    if not has_display():
        parser.print_help()
        progress_console().print("\n(there is no display here for the window)", markup=False)
        return 0
    try:
        return subprocess.run(
            [*sibling_command("gui"), *(["--replay", replay] if replay else [])],
            env=sibling_environment(),
            check=False,
        ).returncode
    except OSError as error:
        raise EnvironmentProblem(
            "no_window",
            f"the window program could not be started: {error}",
            "Use a command instead, e.g. rigtune tune demo.",
        ) from error
