"""A library in C that stands in for NVIDIA's, under the real binding, and the probe on it."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pynvml
import pytest

from probes.nvidia import NvidiaProbe
from probes.nvml import LiveNvml
from tests.fakes.nvidia import SECOND, Clock, card, only

SOURCE = Path(__file__).with_name("nvml_library.c")
COMPILER = shutil.which("cc") if sys.platform == "linux" else None


def compiled(folder: Path, *options: str) -> Path:
    """Compile it under the name by which the binding looks for it, or skip the test."""
    if COMPILER is None:
        pytest.skip("needs a C compiler on Linux")
    target = folder / "libnvidia-ml.so.1"
    subprocess.run([COMPILER, "-shared", "-fPIC", *options, "-o", target, SOURCE], check=True)
    return target


class Hidden:
    """A library without one of its functions."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self._library, self._name = library, name

    def __getattr__(self, name: str) -> Any:
        if name == self._name:
            raise AttributeError(name)
        return getattr(self._library, name)


class StandIn:
    """The library in this process, behind ``pynvml`` until the test ends."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        self.library = ctypes.CDLL(str(path))
        self._patch = patch
        self.hide("")
        self.spoil("", 0)

    def spoil(self, function: str, code: int, value: int = 0) -> None:
        """Let one function fail, or say ``value`` in all of its members where ``code`` is 0."""
        self.library.stand_in(function.encode(), code, ctypes.c_ulonglong(value))

    def hide(self, function: str) -> None:
        """Let one function not be there."""
        self._patch.setattr(pynvml, "nvmlLib", Hidden(self.library, function))
        self._patch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    def readings(self) -> dict[str, object]:
        """Return all that the probe says of the card, at the second of two readings.

        What is not there stands as its reason.
        """
        tree, clock = card(), Clock()
        probe = NvidiaProbe(tree, LiveNvml(), lambda pid: f"program{pid}", clock)
        (info,) = probe.identify()
        probe.set_trial(active=True)
        probe.sample()
        tree.now_ns += SECOND
        clock.now_ns += 11 * SECOND
        sample = only(probe.sample())
        probe.close()
        said = msgspec.structs.asdict(info) | msgspec.structs.asdict(sample)
        said |= info.missing | sample.missing
        return {name: value for name, value in said.items() if name not in {"missing", "t_ns"}}
