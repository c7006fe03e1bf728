"""The card itself: its memory figure read directly, and a process that holds some of it."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

import pynvml

_HERE = Path(__file__).resolve().parent
_POLL_S = 0.004


class Nvml:
    """The card's own memory figure, read directly and not through our probes."""

    def __init__(self) -> None:
        """Open the first card."""
        pynvml.nvmlInit()
        self.handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    def used_bytes(self) -> int:
        """Return the memory in use by programs (version 2: without the driver's reserve)."""
        info = pynvml.nvmlDeviceGetMemoryInfo(self.handle, version=pynvml.nvmlMemory_v2)
        return int(info.used)

    def free_bytes(self) -> int:
        """Return the free memory."""
        info = pynvml.nvmlDeviceGetMemoryInfo(self.handle, version=pynvml.nvmlMemory_v2)
        return int(info.free)

    def pids(self) -> list[int]:
        """Return the processes that compute on the card."""
        return [int(p.pid) for p in pynvml.nvmlDeviceGetComputeRunningProcesses(self.handle)]

    def card(self) -> dict[str, Any]:
        """Return what identifies card and driver."""
        return {
            "name": pynvml.nvmlDeviceGetName(self.handle),
            "driver": pynvml.nvmlSystemGetDriverVersion(),
            "total_bytes": int(pynvml.nvmlDeviceGetMemoryInfo(self.handle).total),
        }


class Peak:
    """Polls the memory in use while a block runs; a reading costs about 10 µs."""

    def __init__(self, nvml: Nvml | None) -> None:
        """Prepare; without NVML everything reads 0."""
        self._nvml = nvml
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self.peak_bytes = 0

    def now(self) -> int:
        """Return the memory in use now."""
        used = self._nvml.used_bytes() if self._nvml else 0
        self.peak_bytes = max(self.peak_bytes, used)
        return used

    def __enter__(self) -> Self:
        """Begin to poll."""
        if self._nvml:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._end.set()
        if self._nvml:
            self._thread.join()

    def _poll(self) -> None:
        while not self._end.wait(_POLL_S):
            self.now()


class Holder:
    """A process that holds device memory (``cuda_holder.py``)."""

    def __init__(self, card: int = 0) -> None:
        """Start it; it holds a driver context only."""
        self._process = subprocess.Popen(
            [sys.executable, str(_HERE / "cuda_holder.py"), str(card)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID"),
        )  # fmt: skip

    def leave(self, free_bytes: int | None) -> int:
        """Allocate until so much is free (``None`` = nothing); return what is free then."""
        assert self._process.stdin
        assert self._process.stdout
        text = "max" if free_bytes is None else str(free_bytes)
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """Give everything back."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(20)
