"""The worker process: ``python -m app.worker``, in the bundle ``rigtune --worker``."""

import argparse
import os
import sys


def main(argv: list[str] | None = None) -> int:
    """Serve requests from stdin until shutdown or the end of stdin; never returns."""
    parser = argparse.ArgumentParser(prog="rigtune --worker")
    parser.add_argument("--rpc", action="append", default=[], metavar="HOST:PORT")
    parser.add_argument("--engine-dir", metavar="DIR")
    options = parser.parse_args(argv)
    fd = take_over_stdout()
    # without this ggml starts a debugger to print a backtrace before it aborts
    os.environ["GGML_NO_BACKTRACE"] = "1"
    if options.engine_dir:
        os.environ["LLAMA_CPP_LIB_PATH"] = os.path.abspath(options.engine_dir)  # noqa: PTH100
    from app.worker.serve import serve

    code = serve(fd, sys.stdin.buffer, rpc=tuple(options.rpc), engine_dir=options.engine_dir)
    sys.stderr.flush()
    # not a plain return: a driver's exit handlers may hang, and the thread that waits for stdin
    # would make the interpreter fail at its end; everything was released before
    os._exit(code)


def take_over_stdout() -> int:
    """Return a private copy of fd 1, which itself becomes stderr.

    Must come before anything native is imported: libraries print there, and their text must not
    land between two messages.
    """
    fd = os.dup(1)
    os.set_inheritable(fd, False)
    os.dup2(2, 1)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(fd, os.O_BINARY)
    return fd


if __name__ == "__main__":
    main()
