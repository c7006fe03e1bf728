"""Writes down what probes read of this machine, without what identifies its owner."""

import re
import socket
from pathlib import Path
from typing import Any

import msgspec

from app.domain.errors import EnvironmentProblem
from app.domain.record import Record
from probes.nvml import Nvml
from probes.reading import Absence
from probes.system import System, SystemFacts
from probes.tree import MAX_TEXT_BYTES, Tree
from probes.windows.facts import Windows
from probes.windows.recording import WindowsRecording, memory_structures, take

FORMAT = "rigtune-machine/1"
FILE_NAME = "machine.json"
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
LONG_HEX = re.compile(r"\b[0-9a-f]{32,64}\b", re.IGNORECASE)
"""Container, machine and boot ids."""
ABSENT = "!"
"""Mark of a reading that was absent; the reason follows."""


class RecordedMachine(Record, frozen=True, kw_only=True):
    """A machine as read: every file, folder, link and answer that the probes asked for.

    One JSON file, because PCI addresses are no file names on Windows. Texts starting with
    ``!`` are reasons of absence.

    Attributes:
        format: ``rigtune-machine/1``.
        note: What machine it is, for people.
        system: Numbers of the operating system.
        files: Text by path.
        binary: First bytes by path, hexadecimal.
        folders: Names by path.
        links: Target by path.
        drm_clients: Programs that held a GPU open: process and the kernel's text about it.
        nvml_start: Why NVML could not be used, ``None`` when it could or was not asked.
        nvml: NVML's answers by ``function(arguments)@device``.
        windows: What Windows said; ``None`` on other systems.
    """

    format: str = FORMAT
    note: str = ""
    system: SystemFacts
    files: dict[str, str] = {}
    binary: dict[str, str] = {}
    folders: dict[str, tuple[str, ...]] = {}
    links: dict[str, str] = {}
    drm_clients: tuple[tuple[int, str], ...] = ()
    nvml_start: str | None = None
    nvml: dict[str, Any] = {}
    windows: WindowsRecording | None = None


class RecordingTree:
    """Passes reads on and keeps what they gave."""

    def __init__(self, tree: Tree) -> None:
        """Read through ``tree``."""
        self._tree = tree
        self.files: dict[str, str] = {}
        self.binary: dict[str, str] = {}
        self.folders: dict[str, tuple[str, ...]] = {}
        self.links: dict[str, str] = {}
        self.drm: tuple[tuple[int, str], ...] = ()

    def text(self, path: str, limit: int = MAX_TEXT_BYTES) -> str | Absence:
        """Return the stripped text of a file (``limit`` bytes), or why it cannot be had."""
        value = self._tree.text(path, limit)
        if value is not Absence.NOT_SUPPORTED:
            kept = f"{ABSENT}{value}" if isinstance(value, Absence) else value
            # Two probes may read different lengths of one file: the longer one serves both.
            self.files[path] = max(self.files.get(path, ""), kept, key=len)
        return value

    def head(self, path: str, n_bytes: int) -> bytes | Absence:
        """Return the first ``n_bytes`` of a binary file, or why they cannot be had."""
        value = self._tree.head(path, n_bytes)
        if isinstance(value, Absence):
            if value is not Absence.NOT_SUPPORTED:
                self.files[path] = f"{ABSENT}{value}"
        else:
            # The firmware's table also holds serial numbers.
            kept = memory_structures(value) if path.endswith("/DMI") else value
            self.binary[path] = kept.hex()
        return value

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a folder; none when it is not there."""
        value = self._tree.names(path)
        if value:
            self.folders[path] = value
        return value

    def target(self, path: str) -> str:
        """Return ``path`` with its links followed, absolute within the tree."""
        value = self._tree.target(path)
        self.links[path] = value
        return value

    def time_ns(self) -> int:
        """Return the time of now."""
        return self._tree.time_ns()

    def drm_clients(self) -> tuple[tuple[int, str], ...]:
        """Return the programs that hold a GPU open: process and the kernel's text about it."""
        self.drm = self._tree.drm_clients()
        return self.drm


class RecordingNvml:
    """Passes calls on and keeps the answers."""

    def __init__(self, nvml: Nvml) -> None:
        """Ask through ``nvml``."""
        self._nvml = nvml
        self.started: Absence | None = None
        self.answers: dict[str, Any] = {}

    def start(self) -> Absence | None:
        """Load and initialise the library; ``None`` when it works, else why not."""
        self.started = self._nvml.start()
        return self.started

    def stop(self) -> None:
        """Release the library."""
        self._nvml.stop()

    def query(self, function: str, *args: int, device: str | None = None) -> Any:
        """Return the plain answer of an NVML call, or an ``Absence``."""
        answer = self._nvml.query(function, *args, device=device)
        kept = f"{ABSENT}{answer}" if isinstance(answer, Absence) else answer
        self.answers[call_key(function, args, device)] = kept
        return answer


def call_key(function: str, args: tuple[int, ...], device: str | None) -> str:
    """Return the name under which an NVML answer is kept."""
    return f"{function}({', '.join(map(str, args))})@{device or 'system'}"


def recorded(
    tree: RecordingTree, nvml: RecordingNvml, system: System, windows: Windows
) -> RecordedMachine:
    """Return everything read so far, anonymised, and all that Windows says."""
    machine = RecordedMachine(
        system=system.facts(),
        files=tree.files,
        binary=tree.binary,
        folders=tree.folders,
        links=tree.links,
        drm_clients=tree.drm,
        nvml_start=None if nvml.started is None else nvml.started.value,
        nvml=nvml.answers,
        windows=take(windows) if system.os == "windows" else None,
    )
    return anonymised(machine, socket.gethostname())


def anonymised(machine: RecordedMachine, host_name: str) -> RecordedMachine:
    """Return the recording with ids replaced, the same one always alike, and no host name."""
    text = msgspec.json.encode(machine).decode()
    numbers: dict[str, int] = {}

    def stand_in(match: re.Match[str]) -> str:
        return (
            f"00000000-0000-0000-0000-{numbers.setdefault(match[0].lower(), len(numbers) + 1):012d}"
        )

    text = UUID.sub(stand_in, text)
    text = LONG_HEX.sub(
        lambda m: f"{numbers.setdefault(m[0].lower(), len(numbers) + 1):032d}", text
    )
    if host_name and host_name.lower() not in {"localhost", "linux", "host"}:
        text = re.sub(rf"\b{re.escape(host_name)}\b", "host", text, flags=re.IGNORECASE)
    return msgspec.json.decode(text, type=RecordedMachine)


def write(directory: Path, machine: RecordedMachine) -> Path:
    """Write the recording into ``directory`` (made if need be) and return the file.

    Raises:
        EnvironmentProblem: The folder cannot be written.
    """
    file = directory / FILE_NAME
    data = msgspec.json.format(msgspec.json.encode(machine, order="deterministic"), indent=1)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_bytes(data + b"\n")
        part.replace(file)
    except OSError as error:
        raise EnvironmentProblem(
            "not_writable",
            f"The recording could not be written to {directory}: {error.strerror}.",
            "Choose a folder you may write to.",
        ) from error
    return file
