"""What the figures share: models, a rig of our own package, capped memory, results."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from card import Holder, Nvml

from app.domain.events import TrialFinished
from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings
from app.domain.trial import Sample, Trial, TrialRequest, Workload
from app.gguf import read_model
from app.rig.interface import Rig
from app.rig.process import Launch
from app.rig.workers import WorkerRig
from app.runtime import atomic_write, sibling_environment
from app.session import Session
from app.session.opening import open_rig
from app.sweep.stats import seconds_per_token
from probes import registry

MIB = 1 << 20
GIB = 1 << 30
MODELS = {
    "a": "qwen2.5-7b-shape-Q4_K_M.gguf",
    "b": "llama-3.1-8b-shape-Q8_0.gguf",
    "c": "qwen3-30b-a3b-shape-Q4_K_M.gguf",
}
# the stand-in: an RPC server on this machine's CPU that says it has this much memory
STAND_IN_BYTES = 4 * GIB
_PATIENCE = 5.0 if "--tiny" in sys.argv else 1.0
"""A rehearsal runs on a small and busy machine."""


class Result:
    """One figure's JSON; written anew after every entry, so that a kill loses nothing."""

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        """Begin the file at ``path``."""
        self._path = path
        self._began_s = time.monotonic()
        self.data: dict[str, Any] = {"status": "running", **head}
        self.save()

    def put(self, key: str, value: Any) -> None:
        """Set one entry."""
        self.data[key] = value
        self.save()

    def add(self, key: str, value: Any) -> None:
        """Append to a list."""
        self.data.setdefault(key, []).append(value)
        self.save()

    def save(self) -> None:
        """Write the file."""
        self.data["seconds"] = round(time.monotonic() - self._began_s, 1)
        text = json.dumps(msgspec.to_builtins(self.data), indent=1, default=str)
        atomic_write(self._path, text.encode())


@dataclasses.dataclass(kw_only=True)
class Lab:
    """One figure's surroundings.

    Attributes:
        out: Folder of the results.
        tiny: Whether this is a rehearsal on the stand-in.
        budget_s: Seconds the figure may take; it then leaves out what is least worth.
        result: Where its numbers go.
    """

    out: Path
    tiny: bool
    budget_s: float
    result: Result

    def __post_init__(self) -> None:
        """Start the clock."""
        self._deadline_s = time.monotonic() + self.budget_s
        self._endpoints: tuple[str, ...] = ()

    @property
    def left_s(self) -> float:
        """Seconds left of the budget."""
        return self._deadline_s - time.monotonic()

    @property
    def device(self) -> str:
        """The engine's name of the device under test."""
        return "RPC0" if self.tiny else "CUDA0"

    @property
    def threads(self) -> int:
        """CPU threads of every run that does not vary them."""
        return 1 if self.tiny else len(os.sched_getaffinity(0))

    def pick(self, real: Any, tiny: Any) -> Any:
        """Return the first on the card, the second in a rehearsal."""
        return tiny if self.tiny else real

    def path(self, letter: str) -> Path:
        """Return the file of a model."""
        return Path(os.environ.get("GPU_MODELS", "models")) / MODELS[letter]

    def spec(self, letter: str) -> ModelSpec:
        """Return what the header of a model says."""
        return read_model(self.path(letter))

    def settings(self, n_gpu_layers: int, **changes: Any) -> Settings:
        """Return complete settings on the device under test."""
        base = Settings(
            n_gpu_layers=n_gpu_layers,
            n_threads=self.threads,
            flash_attn=FlashAttn.ON,
            devices=(self.device,),
        )
        return msgspec.structs.replace(base, **changes)

    @cached_property
    def nvml(self) -> Nvml | None:
        """NVML, or ``None`` on the stand-in."""
        return None if self.tiny else Nvml()

    @contextlib.contextmanager
    def stand_in(self, *total_bytes: int) -> Iterator[None]:
        """Offer a device per size, or the one under test; on the card there is nothing to do."""
        if not self.tiny:
            yield
            return
        from tests.fakes.rpc_device import rpc_device  # noqa: PLC0415 - the rehearsal alone

        with contextlib.ExitStack() as stack:
            sizes = total_bytes or (STAND_IN_BYTES,)
            opened = [stack.enter_context(rpc_device(total_bytes=size)) for size in sizes]
            self._endpoints = tuple(opened)
            yield

    @contextlib.contextmanager
    def capped(self, free_bytes: int | None) -> Iterator[Holder | None]:
        """Leave only so much device memory free (``None`` = all of it)."""
        if self.tiny:
            with self.stand_in(free_bytes or STAND_IN_BYTES):
                yield None
            return
        if free_bytes is None:
            yield None
            return
        holder = Holder()
        try:
            self.result.put("free_bytes_after_cap", holder.leave(free_bytes))
            yield holder
        finally:
            holder.close()
            self.wait_for_memory()

    @property
    def rpc(self) -> tuple[str, ...]:
        """Endpoints to join."""
        return self._endpoints

    def rpc_arguments(self) -> list[str]:
        """Return the command-line options that join them."""
        return [word for endpoint in self.rpc for word in ("--rpc", endpoint)]

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """Give a session that sees the device as it is now."""
        session = Session(registry, rpc=self.rpc)
        try:
            yield session
        finally:
            session.close()

    @contextlib.contextmanager
    def rig(self, letter: str, devices: tuple[str, ...] | None = None) -> Iterator[WorkerRig]:
        """Give a rig of worker processes for a model, telemetry included."""
        with self.session() as session:
            rig, _ = open_rig(
                self.spec(letter), session.machine(), Launch(rpc=self.rpc),
                devices=(self.device,) if devices is None else devices,
                telemetry=session.telemetry(),
            )  # fmt: skip
            try:
                yield rig
            finally:
                rig.close()

    def wait_for_memory(self) -> None:
        """Wait until the driver has given back what ended processes held."""
        if self.nvml is None:
            return
        before = -1
        for _ in range(30):
            used = self.nvml.used_bytes()
            if used == before:
                return
            before = used
            time.sleep(0.3)


def run(
    rig: Rig,
    settings: Settings,
    workload: Workload,
    reps: int = 3,
    *,
    stage: str = "benchmark",
    see: Callable[[str], None] = lambda _: None,
) -> Trial:
    """Run one trial and return it.

    Args:
        rig: Where.
        settings: With what.
        workload: What to time.
        reps: Passes of either phase.
        stage: Kept in the request.
        see: Called with the phase at every event.
    """
    request = TrialRequest(
        stage=stage, settings=settings, workload=workload, min_reps=reps, max_reps=reps, max_s=1.0
    )
    for event in rig.run_trial(request):
        if isinstance(event, TrialFinished):
            say(event.trial)
            return event.trial
        see(event.phase)
    raise RuntimeError("a trial ended without a result")


def say(trial: Trial) -> None:
    """Print one line about a trial, for the log."""
    s = trial.request.settings
    print(
        f"{trial.request.stage} ngl {s.n_gpu_layers} ncmoe {s.n_cpu_moe} ub {s.n_ubatch} "
        f"{s.load_mode} depth {trial.request.workload.depth}: {trial.outcome} "
        f"{speed(trial.prefill)} {speed(trial.decode)} tok/s, {trial.elapsed_s:.1f} s"
    )


def speed(samples: tuple[Sample, ...]) -> float | None:
    """Return the median speed of the passes, tokens per second."""
    times = seconds_per_token(samples)
    return round(1 / median(times), 3) if times else None


def speeds(samples: tuple[Sample, ...]) -> list[float]:
    """Return the speed of every pass, tokens per second."""
    return [round(1 / t, 3) for t in seconds_per_token(samples)]


def brief(trial: Trial) -> dict[str, Any]:
    """Return a trial with every raw pass, without what repeats in all of them."""
    window = trial.telemetry
    return {
        "settings": trial.effective or trial.request.settings,
        "workload": trial.request.workload,
        "outcome": str(trial.outcome),
        "prefill_tok_s": speed(trial.prefill),
        "decode_tok_s": speed(trial.decode),
        "prefill": speeds(trial.prefill),
        "decode": speeds(trial.decode),
        "device_bytes": trial.device_bytes,
        "host_bytes": trial.host_bytes,
        "load_s": trial.load_s,
        "elapsed_s": round(trial.elapsed_s, 2),
        "error": trial.error,
        "log_tail": trial.log_tail[-12:],
        "disturbed": window.disturbed if window else None,
        "vram_peak_bytes": window.vram_peak_bytes if window else None,
    }


def command(
    arguments: list[str], timeout_s: float = 60.0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program with our source tree importable, and return what it printed."""
    return subprocess.run(
        arguments,
        capture_output=True, text=True, timeout=timeout_s * _PATIENCE, check=False,
        env=sibling_environment() | environment,
    )  # fmt: skip
