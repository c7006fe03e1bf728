"""Child processes on Windows: pipes, no console, and a tree that dies with its parent."""

import ctypes
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import wintypes
from pathlib import Path

import msgspec
import pytest

from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.rig.death import explain
from app.rig.ends import WorkerAbsent, WorkerDied
from app.rig.process import Launch, WorkerProcess, drain, start_worker
from app.rig.process_tree import CREATION_FLAGS, ProcessTree
from app.worker import protocol
from tests.fakes.faulty_worker import faulty

assert sys.platform == "win32"

ROOT = Path(__file__).resolve().parents[2]
SYNCHRONIZE = 0x00100000
GONE_MS = 20_000
SLEEP = "import time; time.sleep(600)"
FAMILY = f"""
import subprocess, sys
from app.rig.process_tree import CREATION_FLAGS, ProcessTree
child = subprocess.Popen(
    [sys.executable, "-c", '''
import subprocess, sys
grandchild = subprocess.Popen([sys.executable, "-c", "{SLEEP}"])
print(grandchild.pid, flush=True)
{SLEEP}
'''],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, creationflags=CREATION_FLAGS,
)
tree = ProcessTree(child)
print(child.pid, int(child.stdout.readline()), flush=True)
if sys.stdin.readline().strip() == "kill":
    tree.kill()
    child.wait()
sys.stdin.read()
"""
KERNEL = ctypes.WinDLL("kernel32", use_last_error=True)
KERNEL.OpenProcess.restype = ctypes.c_void_p
KERNEL.WaitForSingleObject.argtypes = (ctypes.c_void_p, ctypes.c_ulong)


class Family:
    """A parent with a child in a ``ProcessTree`` and a grandchild."""

    def __init__(self) -> None:
        self.parent = subprocess.Popen(
            [sys.executable, "-c", FAMILY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self.parent.stdout
        pids = [int(word) for word in self.parent.stdout.readline().split()]
        # held before anything ends: a number alone may soon be somebody else's
        self._handles = [KERNEL.OpenProcess(SYNCHRONIZE, False, pid) for pid in pids]
        assert all(self._handles)

    def say(self, word: str) -> None:
        assert self.parent.stdin
        self.parent.stdin.write(f"{word}\n")
        self.parent.stdin.flush()

    def alive(self, wait_ms: int = 0) -> list[bool]:
        """Return whether child and grandchild still run after waiting for their end."""
        return [KERNEL.WaitForSingleObject(h, wait_ms) != 0 for h in self._handles]


@contextmanager
def family() -> Iterator[Family]:
    made = Family()
    try:
        yield made
    finally:
        made.parent.kill()
        made.parent.communicate()


def test_killed_parent_takes_the_tree_along() -> None:
    """When RigTune is killed, its worker and what that started end too."""
    with family() as made:
        assert made.alive() == [True, True]
        made.parent.kill()
        assert made.alive(GONE_MS) == [False, False]


def test_kill_ends_the_whole_tree() -> None:
    """``ProcessTree.kill`` reaches what the worker started, while its parent lives on."""
    with family() as made:
        made.say("kill")
        assert made.alive(GONE_MS) == [False, False]
        assert made.parent.poll() is None


def test_worker_has_no_console_window() -> None:
    """A worker started as the rig starts it owns no console that could pop up."""
    code = "import ctypes; print(ctypes.windll.kernel32.GetConsoleWindow())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        creationflags=CREATION_FLAGS,
    )
    assert done.stdout.strip() == "0"


def test_binary_pipe_keeps_lines_and_letters() -> None:
    """NDJSON passes both pipes unchanged: no carriage returns, no code page."""
    code = "import os, sys\nwhile line := sys.stdin.buffer.readline(): os.write(1, line)"
    text = msgspec.json.encode({"path": "C:\\模型\\Ünï.gguf"}) + b"\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        creationflags=CREATION_FLAGS,
    )
    out, _ = process.communicate(text * 3)
    assert out == text * 3


def test_worker_that_ignores_everything_is_ended() -> None:
    """The stop ladder ends a worker that neither answers nor heeds a polite request."""
    worker = drain(start_worker(faulty("hang@load")))
    exchange = worker.ask(
        protocol.Load(model_path="m.gguf", settings=Settings(n_gpu_layers=0)),
        "load",
        lambda _: 60.0,
    )
    next(exchange)
    begin_s = time.monotonic()
    exchange.close()
    worker.close()
    assert worker.is_gone()
    assert time.monotonic() - begin_s < 60


def test_missing_program_is_a_sentence() -> None:
    """A worker that cannot be started is reported, with Windows' reason."""
    with pytest.raises(WorkerAbsent) as caught:
        WorkerProcess(Launch(command=("C:\\no such folder\\rigtune.exe", "--worker")))
    assert str(caught.value)


def test_access_violation_is_named() -> None:
    """The status of a crashed process becomes a sentence."""
    # in a thread of its own: ctypes turns a crash inside its calls into an exception
    code = "import ctypes, time; ctypes.windll.kernel32.CreateThread(None, 0, 16, None, 0, None); "
    code += "time.sleep(60)"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, creationflags=CREATION_FLAGS
    )
    cause = explain(WorkerDied(process.returncode, (), None), "decode")
    assert cause.outcome is Outcome.CRASHED
    assert "an access violation" in cause.error.message


def test_crash_of_a_worker_opens_no_dialog() -> None:
    """Windows may not ask the user anything when a worker crashes: it would never end."""
    code = "from app.worker.__main__ import take_over_stdout as t; t(); import ctypes, os; "
    code += "os.write(2, b'%d' % ctypes.windll.kernel32.GetErrorMode())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT, text=True
    )
    fails_critical, no_fault_box = 1, 2
    assert int(done.stderr) & (fails_critical | no_fault_box) == fails_critical | no_fault_box


def test_dll_loads_while_a_worker_waits_for_requests() -> None:
    """numpy and graphics drivers ask what stdin is while they load; that must not wait for it."""
    code = "import threading; from app.worker.__main__ import take_over_stdin as t; requests = t();"
    code += "threading.Thread(target=requests.readline, daemon=True).start();"
    code += "threading.Event().wait(0.3); import numpy; print('loaded', flush=True)"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    alarm = threading.Timer(GONE_MS / 1000, child.kill)
    alarm.start()
    assert child.stdout
    said = child.stdout.readline()
    alarm.cancel()
    child.kill()
    child.communicate()
    assert said.strip() == b"loaded"


def test_kill_ends_a_worker_that_is_in_no_job() -> None:
    """Where no job could be made the worker itself is ended all the same."""
    process = subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE)
    tree = ProcessTree(process)
    handle, tree._job = tree._job, wintypes.HANDLE(None)
    tree.kill()
    try:
        assert process.wait(GONE_MS / 1000) == 1
    finally:
        process.kill()
        process.communicate()
        tree._job = handle
        tree.close()


def test_tree_of_an_ended_process_is_harmless() -> None:
    """A child that ends before it is put into its job leaves nothing to trip over."""
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    process.wait()
    tree = ProcessTree(process)
    tree.terminate()
    tree.kill()
    tree.close()
    process.communicate()


def test_clock_is_shared_by_processes() -> None:
    """Parent's and child's time stamps lie on one line, as telemetry windows need it."""
    before = time.perf_counter_ns()
    done = subprocess.run(
        [sys.executable, "-c", "import time; print(time.perf_counter_ns())"],
        capture_output=True,
        check=True,
    )
    assert before < int(done.stdout) < time.perf_counter_ns()


def test_clock_is_fine_enough_to_time_a_token() -> None:
    """Two readings of the clock differ by far less than a fast token takes."""
    first = time.perf_counter_ns()
    while (second := time.perf_counter_ns()) == first:
        pass
    assert second - first < 100_000
