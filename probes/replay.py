"""Stands in for a machine with a recording of it."""

from pathlib import Path
from typing import Any

import msgspec

from app.domain.errors import EnvironmentProblem
from probes.reading import Absence, reason_of
from probes.record import ABSENT, FILE_NAME, FORMAT, RecordedMachine, call_key
from probes.system import SystemFacts
from probes.tree import MAX_TEXT_BYTES

HINT = "Give the folder that `rigtune probe --record` wrote."


def load(directory: Path) -> RecordedMachine:
    """Return the recording in ``directory``.

    Raises:
        EnvironmentProblem: There is none, or it is damaged.
    """
    file = directory / FILE_NAME
    try:
        machine = msgspec.json.decode(file.read_bytes(), type=RecordedMachine)
    except OSError as error:
        raise EnvironmentProblem(
            "no_recording", f"No recording could be read from {file}: {error.strerror}.", HINT
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EnvironmentProblem(
            "broken_recording", f"{file} is not a recorded machine: {error}.", HINT
        ) from error
    if machine.format != FORMAT:
        raise EnvironmentProblem(
            "broken_recording", f"{file} has format {machine.format!r}, expected {FORMAT}.", HINT
        )
    return machine


class RecordedTree:
    """The files of a recording; what was not read then does not exist."""

    def __init__(self, machine: RecordedMachine) -> None:
        """Answer from ``machine``."""
        self._machine = machine

    def text(self, path: str, limit: int = MAX_TEXT_BYTES) -> str | Absence:  # noqa: ARG002
        """Return the text of a file, or why it could not be had."""
        value = self._machine.files.get(path)
        return Absence.NOT_SUPPORTED if value is None else unmarked(value)

    def head(self, path: str, n_bytes: int) -> bytes | Absence:
        """Return the first ``n_bytes`` of a binary file, or why they could not be had."""
        try:
            return bytes.fromhex(self._machine.binary[path])[:n_bytes]
        except (KeyError, ValueError):
            # Why it could not be had then stands among the texts.
            reason = unmarked(self._machine.files.get(path, ""))
            return reason if isinstance(reason, Absence) else Absence.NOT_SUPPORTED

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder; none when it was not there."""
        return self._machine.folders.get(path, ())

    def target(self, path: str) -> str:
        """Return ``path`` with its links followed."""
        return self._machine.links.get(path, path)

    def drm_clients(self) -> tuple[tuple[int, str], ...]:
        """Return the programs that held a GPU open."""
        return self._machine.drm_clients

    def time_ns(self) -> int:
        """Return a time that stands still, so that no rate is made of frozen counters."""
        return 0


class RecordedNvml:
    """The answers of a recording; what was not asked then is not supported."""

    def __init__(self, machine: RecordedMachine) -> None:
        """Answer from ``machine``."""
        self._machine = machine

    def start(self) -> Absence | None:
        """Return why the library could not be used then, ``None`` when it could."""
        reason = self._machine.nvml_start
        return None if reason is None else reason_of(reason)

    def stop(self) -> None:
        """Nothing is held."""

    def query(self, function: str, *args: int, device: str | None = None) -> Any:
        """Return the recorded answer, or an ``Absence``."""
        answer = self._machine.nvml.get(call_key(function, args, device), Absence.NOT_SUPPORTED)
        return unmarked(answer) if isinstance(answer, str) else answer


class RecordedSystem:
    """The operating system's numbers in a recording."""

    def __init__(self, machine: RecordedMachine) -> None:
        """Answer from ``machine``."""
        self._facts = machine.system

    @property
    def os(self) -> str:
        """Return the system that was recorded."""
        return self._facts.os

    def facts(self) -> SystemFacts:
        """Return the numbers as recorded."""
        return self._facts

    def load(self) -> SystemFacts:
        """Return the numbers as recorded."""
        return self._facts

    def process_name(self, pid: int) -> str | None:  # noqa: ARG002 - nothing is recorded of it
        """Return ``None``: what ran on the machine is not in a recording."""
        return None


def unmarked(value: str) -> str | Absence:
    """Return a recorded text, or the reason it stands for."""
    if isinstance(value, Absence) or not value.startswith(ABSENT):
        return value
    return reason_of(value[len(ABSENT) :])
