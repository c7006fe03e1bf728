"""A CPU-backed RPC server on loopback: a second device where no GPU is.

Run as a program it serves until its stdin ends: ``rpc_device.py PORT EXTRA_BYTES TOTAL_BYTES``,
each 0 for none. With ``EXTRA_BYTES`` its address space may grow by no more than that, so that it
runs out of memory. With ``TOTAL_BYTES`` it says that it has that much memory, all of it free.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_READY_S = 30.0
_GET_MEMORY = 2  # struct ggml_backend_device begins with its functions; this is the third
_kept: list[object] = []  # what C code points to


@contextlib.contextmanager
def rpc_device(extra_bytes: int = 0, total_bytes: int = 0) -> Iterator[str]:
    """Start a server and give its ``HOST:PORT``."""
    if extra_bytes and sys.platform == "win32":
        pytest.skip("Windows sets no limit to an address space")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    numbers = [str(number) for number in (port, extra_bytes, total_bytes)]
    command = [sys.executable, str(Path(__file__)), *numbers]
    server = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, PYTHONPATH=str(_REPOSITORY)),
    )
    try:
        _wait_until_ready(server, port)
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
        assert server.stdin
        server.stdin.close()


def _wait_until_ready(server: subprocess.Popen[bytes], port: int) -> None:
    again = threading.Event()
    for _ in range(int(_READY_S / 0.02)):
        assert server.poll() is None, "the RPC server ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            again.wait(0.02)
        else:
            return
    msg = "the RPC server did not come up"
    raise TimeoutError(msg)


def _serve(port: int, extra_bytes: int, total_bytes: int) -> None:
    import ctypes

    from app.worker import devices, native

    devices.load_backends(None)
    # only now: on Windows a DLL cannot be loaded while a thread waits for stdin
    threading.Thread(target=_end_with_parent, daemon=True).start()
    cpu = next(
        native.dev_get(i)
        for i in range(native.dev_count())
        if native.dev_type(native.dev_get(i)) == 0
    )
    start = ctypes.CFUNCTYPE(
        None,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_void_p),
    )(native.reg_proc_address(native.reg_by_name(b"RPC"), b"ggml_backend_rpc_start_server"))
    if extra_bytes:
        _limit(extra_bytes)
    if total_bytes:
        _declare(cpu, total_bytes)
    start(f"127.0.0.1:{port}".encode(), None, 1, 1, (ctypes.c_void_p * 1)(cpu))


def _declare(device: int, total_bytes: int) -> None:
    """Let ``device`` (``struct ggml_backend_device``) say that it has so much memory."""
    import ctypes

    numbers = ctypes.POINTER(ctypes.c_size_t)

    def memory(_device: int, free: Any, total: Any) -> None:
        free[0] = total[0] = total_bytes

    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, numbers, numbers)(memory)
    _kept.append(function)
    functions = ctypes.cast(device, ctypes.POINTER(ctypes.c_void_p))
    functions[_GET_MEMORY] = ctypes.cast(function, ctypes.c_void_p).value


def _limit(extra_bytes: int) -> None:
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    _serve(*map(int, sys.argv[1:4]))
