"""What the end of a worker process means."""

import signal
import sys

import pytest

from app.domain.outcome import Outcome
from app.rig.death import explain, problem
from app.rig.ends import WorkerAbsent, WorkerDied, WorkerSilent


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SIGKILL", "killed"),
        ("SIGSEGV", "crashed"),
        ("SIGABRT", "crashed"),
        ("SIGILL", "illegal_instruction"),
        ("SIGBUS", "file_lost"),
        ("unknown", "crashed"),
    ],
)
def test_signals(name: str, code: str) -> None:
    """Each signal has its cause, names the phase, and quotes the last line.

    Not where something else killed the engine: what it said last has nothing to do with that.
    """
    number = getattr(signal, name, 200)
    cause = explain(WorkerDied(-number, ("first", "last line"), None), "decode")
    assert cause.outcome is Outcome.CRASHED
    assert cause.error.code == code
    assert "decode" in cause.error.message
    assert ("last line" in cause.error.message) is (name != "SIGKILL")
    assert cause.error.hint


def test_windows_status_is_spelled_out() -> None:
    """A missing library is told apart from a crash, signed or unsigned."""
    for code in (0xC0000135, 0xC0000135 - (1 << 32)):
        if code > 0:
            assert "a missing library" in explain(WorkerDied(code, (), None), "start").error.message


def test_last_words_beat_the_exit_code() -> None:
    """A process that says why it dies is believed."""
    lines = ("CUDA error: out of memory", "  current device: 0")
    assert explain(WorkerDied(-6, lines, None), "decode").outcome is Outcome.OUT_OF_MEMORY


def test_silence_names_phase_and_budget() -> None:
    """A hang says where, and how long was waited."""
    cause = explain(WorkerSilent("load", 42), "load")
    assert cause.outcome is Outcome.TIMED_OUT
    assert "load for 42 s" in cause.error.message


def test_program_that_is_not_there() -> None:
    """An installation without its worker is a problem the user can act on."""
    info = problem(WorkerAbsent("No such file or directory")).info
    assert info.code == "engine_not_started"
    assert "No such file" in info.message


def test_phases_read_as_words() -> None:
    """No protocol name such as ``warm_up`` in a sentence."""
    assert "in warm-up" in explain(WorkerDied(1, (), None), "warm_up").error.message
    assert "in context creation for" in explain(WorkerSilent("context", 9), "load").error.message
