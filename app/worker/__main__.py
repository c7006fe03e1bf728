"""The worker process: ``python -m app.worker``, in the bundle ``rigtune --worker``."""

import argparse
import os
import sys
from typing import BinaryIO

# STD_INPUT_HANDLE and STD_OUTPUT_HANDLE (winbase.h)
_STD_INPUT, _STD_OUTPUT = -10, -11
EXIT_NO_ENGINE = 3


def main(argv: list[str] | None = None) -> int:
    """Serve requests from stdin until shutdown or the end of stdin; never returns."""
    parser = argparse.ArgumentParser(prog="rigtune --worker")
    parser.add_argument("--rpc", action="append", default=[], metavar="HOST:PORT")
    parser.add_argument("--engine-dir", metavar="DIR")
    parser.add_argument("--pin", action="append", default=[], metavar="NAME=PCI_ID")
    options = parser.parse_args(argv)
    fd = take_over_stdout()
    requests = take_over_stdin()
    # without this ggml starts a debugger to print a backtrace before it aborts
    os.environ["GGML_NO_BACKTRACE"] = "1"
    if options.engine_dir:
        os.environ["LLAMA_CPP_LIB_PATH"] = os.path.abspath(options.engine_dir)  # noqa: PTH100
    try:
        from app.worker.serve import serve
    except (AttributeError, ImportError, OSError, RuntimeError) as error:
        code = refuse(fd, options.engine_dir, error)
    else:
        code = serve(
            fd,
            requests,
            rpc=tuple(options.rpc),
            engine_dir=options.engine_dir,
            pins=dict(pin.split("=", 1) for pin in options.pin),
        )
    sys.stderr.flush()
    # not a plain return: a driver's exit handlers may hang, and the thread that waits for stdin
    # would make the interpreter fail at its end; everything was released before
    os._exit(code)


def refuse(fd: int, engine_dir: str | None, error: Exception) -> int:
    """Tell the parent why the engine's libraries cannot be used, and return the exit code."""
    from app.domain.errors import ErrorInfo
    from app.domain.outcome import Outcome
    from app.worker.protocol import Codec, Failed

    where = f"The libraries in {engine_dir} cannot be used" if engine_dir else "No engine"
    hint = (
        "Name the folder that holds libllama and the ggml libraries of a llama.cpp as old as "
        "RigTune's own."
        if engine_dir
        else "Reinstall RigTune."
    )
    info = ErrorInfo(code="engine_unusable", message=f"{where}: {error}.", hint=hint)
    os.write(fd, Codec().encode(Failed(outcome=Outcome.LOAD_FAILED, error=info), t_ns=0))
    return EXIT_NO_ENGINE


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
        _set_standard_handle(_STD_OUTPUT, 1)
        # a crash or a missing DLL must end the process, not open a dialog that keeps it alive
        msvcrt.SetErrorMode(msvcrt.SEM_FAILCRITICALERRORS | msvcrt.SEM_NOGPFAULTERRORBOX)
    return fd


def take_over_stdin() -> BinaryIO:
    """Return where the requests come from; on Windows fd 0 itself becomes empty.

    There a thread that waits for a pipe blocks whoever asks what kind of file it is, and every
    DLL with a C runtime of its own (numpy's, a graphics driver's) asks that of stdin while it is
    loaded: it would wait for the next request.
    """
    if sys.platform != "win32":
        return sys.stdin.buffer
    fd = os.dup(0)
    os.set_inheritable(fd, False)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    _set_standard_handle(_STD_INPUT, 0)
    return open(fd, "rb")  # noqa: PTH123 - open as long as the process


def _set_standard_handle(which: int, fd: int) -> None:
    """Tell Windows too: not every C runtime that copies descriptors does."""
    if sys.platform == "win32":
        import ctypes
        import msvcrt

        kernel = ctypes.WinDLL("kernel32")
        kernel.SetStdHandle(which, ctypes.c_void_p(msvcrt.get_osfhandle(fd)))


if __name__ == "__main__":
    main()
