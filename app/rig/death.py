"""What a worker's end means: an outcome, a sentence and a next step."""

import signal
import sys

from app.domain.causes import Cause, find_cause, shorten
from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.outcome import Outcome
from app.rig.ends import WorkerDied, WorkerEnd, WorkerRefused, WorkerSilent

# Windows status codes of a crashed process
_WINDOWS_CRASHES = {
    0xC0000005: "an access violation",
    0xC000001D: "an instruction this processor does not have",
    0xC0000135: "a missing library",
    0xC0000139: "a library of the wrong version",
    0xC0000409: "an abort",
}
# phases whose name in the protocol does not read well in a sentence
_IN_WORDS = {"start": "start-up", "context": "context creation", "warm_up": "warm-up"}
_ILLEGAL_INSTRUCTION = 0xC000001D


def explain(end: WorkerEnd, phase: str) -> Cause:
    """Return the cause of ``end``, which came in ``phase``."""
    match end:
        case WorkerRefused():
            return Cause(outcome=end.outcome, error=end.error)
        case WorkerSilent():
            return _timed_out(end)
        case WorkerDied():
            return _died(end, _IN_WORDS.get(phase, phase))
        case _:
            message = f"The engine's process could not be started: {end}."
            return _crash("engine_not_started", message, "Reinstall RigTune.")


def problem(end: WorkerEnd, phase: str = "start") -> EnvironmentProblem:
    """Return what to tell the user when there is no worker to go on with."""
    error = explain(end, phase).error
    return EnvironmentProblem(error.code, error.message, error.hint)


def _timed_out(end: WorkerSilent) -> Cause:
    phase = _IN_WORDS.get(end.phase, end.phase)
    message = f"The engine made no progress in {phase} for {end.budget_s:.0f} s and was ended."
    hint = "The device may hang or be very slow: try fewer GPU layers or another device."
    return Cause(
        outcome=Outcome.TIMED_OUT,
        error=ErrorInfo(code="timed_out", message=message, hint=hint),
    )


def _died(end: WorkerDied, phase: str) -> Cause:
    if end.protocol is not None:
        message = f"The engine's process sent something unreadable: {shorten(end.protocol)}"
        hint = "Both programs must come from the same RigTune version: reinstall it."
        return _crash("protocol", message, hint)
    named = find_cause(end.lines)
    if named and named.outcome is not Outcome.UNSUPPORTED:
        return named
    last = f" Its last line: {shorten(end.lines[-1])}" if end.lines else ""
    return _by_code(end.code, phase, last)


def _by_code(code: int | None, phase: str, last: str) -> Cause:
    if code is not None and code < 0 and sys.platform != "win32":
        return _by_signal(-code, phase, last)
    if code is not None and (code & 0xFFFFFFFF) in _WINDOWS_CRASHES:
        what = _WINDOWS_CRASHES[code & 0xFFFFFFFF]
        return _crash(
            "crashed", f"The engine ended in {phase} by {what}.{last}", _crash_hint(phase)
        )
    how = "closed its connection" if code is None else f"ended with code {code}"
    return _crash("crashed", f"The engine {how} in {phase}.{last}", _crash_hint(phase))


def _by_signal(number: int, phase: str, last: str) -> Cause:
    if number == signal.SIGKILL:
        # its last line has nothing to do with that
        message = f"The engine was killed from outside in {phase}."
        hint = "Usually the system ran out of RAM: close programs, or use a smaller model."
        return _crash("killed", message, hint)
    if number == signal.SIGILL:
        message = f"The engine uses an instruction this processor does not have ({phase}).{last}"
        return _crash("illegal_instruction", message, "Use a portable engine build.")
    if number == getattr(signal, "SIGBUS", None):
        message = f"The model's file changed or vanished while in use ({phase}).{last}"
        return _crash("file_lost", message, "Check the disk; load mode none reads it once.")
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return _crash("crashed", f"The engine crashed in {phase} ({name}).{last}", _crash_hint(phase))


def _crash(code: str, message: str, hint: str) -> Cause:
    error = ErrorInfo(code=code, message=message, hint=hint)
    return Cause(outcome=Outcome.CRASHED, error=error)


def _crash_hint(phase: str) -> str:
    if phase == _IN_WORDS["start"]:  # nothing of ours has run: drivers were asked for their devices
        return (
            "Usually a graphics driver: update it. Until then the processor serves when the "
            "variable VK_LOADER_DRIVERS_DISABLE is set to * (which leaves Vulkan out)."
        )
    return "Try other settings; if it repeats, update the graphics driver."
