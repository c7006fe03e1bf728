"""Composition root of the command line; ``--worker`` turns the process into a worker."""

import sys


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Without a command the window program is started.
    """
    args = sys.argv[1:] if argv is None else argv
    if args[:1] == ["--worker"]:
        # Imported late: the worker must redirect fd 1 before anything native is loaded.
        from app.worker.__main__ import main as worker_main

        return worker_main(args[1:])
    from app.cli.main import run
    from probes import registry

    return run(args, registry)


if __name__ == "__main__":
    raise SystemExit(main())
