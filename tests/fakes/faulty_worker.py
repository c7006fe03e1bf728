"""A worker without an engine that fails on demand: ``faulty_worker.py FAULT@PLACE…``.

Places: ``hello``, ``load``, ``decode``, ``dry_run``, ``template``, ``token``, ``serve``. Without
a fault for a place it answers as a worker does.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from app.domain.errors import ErrorInfo
from app.domain.machine import EngineDevice, EngineInfo, GpuKind
from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.trial import Sample
from app.rig.budgets import Budgets
from app.rig.process import Launch
from app.worker import protocol
from app.worker.__main__ import take_over_stdout

ENGINE = EngineInfo(
    version="0", llama_version="0", backends=("CPU",), devices=(), supports_offload=False
)
HOST_BYTES, CARD_BYTES = 1234, 1 << 30
IMPATIENT = Budgets(
    hello_s=10,
    load_s=0.5,
    context_s=0.5,
    first_use_s=0.5,
    batch_s=0.5,
    token_s=0.5,
    dry_run_s=0.5,
    cancel_s=0.3,
    shutdown_s=0.2,
    terminate_s=0.2,
)


def faulty(*faults: str, budgets: Budgets = IMPATIENT) -> Launch:
    """Return how to start this program with ``faults``."""
    return Launch(command=(sys.executable, str(Path(__file__)), *faults), budgets=budgets)


class FaultyWorker:
    """Speaks the protocol until told to fail."""

    def __init__(self, faults: dict[str, str]) -> None:
        """Fail as ``faults`` says, by place."""
        self._fd = take_over_stdout()
        self._faults = faults
        self.engine = ENGINE
        self._codec = protocol.Codec()
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Answer requests until shutdown or the end of stdin."""
        self.reach("hello")
        self.send(
            protocol.Hello(
                protocol=1, app_version="0", pid=os.getpid(), engine=self.engine,
                chat_templates=("chatml",),
            )
        )  # fmt: skip
        for line in sys.stdin.buffer:
            request = protocol.decode_request(line)
            if isinstance(request, protocol.Shutdown):
                self.send(protocol.Bye())
                return
            self.answer(request)

    def answer(self, request: protocol.Request) -> None:
        """Answer one request, failing where asked to."""
        match request:
            case protocol.Load(settings=settings):
                self.send(protocol.LoadStarted())
                self.reach("load")
                finished = protocol.LoadFinished(
                    requested=settings, effective=settings, elapsed_ns=1_000_000
                )
                self.send(finished)
            case protocol.RunTrial():
                self._trial(request)
            case protocol.DryRun(settings=settings):
                self.reach("dry_run")
                self.send(
                    protocol.DryRunFinished(devices=(host(),), effective=settings, elapsed_ns=1)
                )
            case protocol.Generate():
                self.send(protocol.GenerateProgress(phase="template"))
                self.reach("template")
                self.send(protocol.GenerateStarted(n_prompt=2, n_reused=0, template="text"))
                self.send(protocol.Token(text="half an", n_tok=1))
                self.reach("token")
                self.send(protocol.GenerateFinished(
                    reason="stop", n_prompt=2, n_reused=0, n_gen=1,
                    ttft_ns=1, prefill_ns=1, decode_ns=0,
                ))  # fmt: skip
            case protocol.Serve(settings=settings):
                self.reach("load")
                started = protocol.ServeStarted(port=1, effective=settings, devices=(host(),))
                self.send(started)
                self.reach("serve")
                self.send(protocol.ServeFinished(n_requests=0))
            case protocol.Tokenize():
                self.send(protocol.TokenizeFinished(n_tok=1))
            case _:
                pass

    def _trial(self, request: protocol.RunTrial) -> None:
        buffers = (*(card(d) for d in self.engine.devices), host())
        self.send(protocol.TrialStarted(effective=request.settings, devices=buffers))
        self.send(protocol.TrialProgress(phase="decode"))
        sample = Sample(n_tok=8, ns=1_000_000)
        self.send(protocol.TrialSample(phase="prefill", sample=sample))
        self.reach("decode")
        self.send(protocol.TrialFinished(prefill=(sample,), decode=(sample,)))

    def send(self, message: protocol.Message) -> None:
        """Write one line."""
        with self._lock:
            os.write(self._fd, self._codec.encode(message, time.perf_counter_ns()))

    def reach(self, place: str) -> None:
        """Commit the fault of ``place``, if there is one."""
        if fault := self._faults.get(place):
            FAULTS[fault](self)

    # --- faults ----------------------------------------------------------------------------

    def device(self) -> None:
        """Claim to have a graphics card."""
        card = EngineDevice(
            name="CUDA0", backend="CUDA", description="", kind=GpuKind.DISCRETE,
            total_bytes=8 << 30, free_bytes=7 << 30, pci_id="0000:01:00.0",
        )  # fmt: skip
        self.engine = msgspec.structs.replace(ENGINE, devices=(card,))

    def abort(self) -> None:
        """Die as ggml does on an internal check."""
        os.abort()

    def engine_abort(self) -> None:
        """Die as ggml does, after the abort callback got the reason out."""
        error = ErrorInfo(code="engine_abort", message="GGML_ASSERT(x) failed")
        self.send(protocol.Failed(outcome=Outcome.CRASHED, error=error))
        os.abort()

    def cuda_out_of_memory(self) -> None:
        """Die as the CUDA backend does when a pool cannot grow."""
        print("CUDA error: out of memory", file=sys.stderr, flush=True)
        os.abort()

    def device_lost(self) -> None:
        """Die as the Vulkan backend does after a driver reset."""
        print("what():  vk::Queue::submit: ErrorDeviceLost", file=sys.stderr, flush=True)
        os.abort()

    def segfault(self) -> None:
        """Read address 0."""
        ctypes.string_at(0)

    def exit(self) -> None:
        """End with a code."""
        os._exit(7)

    def hang(self) -> None:
        """Do nothing any more, but keep the heart beating."""
        while True:
            self.send(protocol.Heartbeat())
            time.sleep(0.05)

    def hang_stubbornly(self) -> None:
        """Hang, ignore polite signals, and leave a child behind."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time;time.sleep(600)"])
        print(f"child {child.pid}", file=sys.stderr, flush=True)
        self.hang()

    def noise(self) -> None:
        """Print to fd 1 as native libraries do."""
        os.write(1, b"noise from a library\n")

    def garbage(self) -> None:
        """Write something that is no message."""
        os.write(self._fd, b"\x00\xff garbage {\n")
        self.hang()

    def wrong_version(self) -> None:
        """Speak another version of the protocol."""
        os.write(self._fd, b'{"type":"bye","v":99}\n')
        self.hang()

    def oversized(self) -> None:
        """Write a line longer than the protocol allows."""
        os.write(self._fd, b'{"type":"log","level":"' + b"x" * protocol.MAX_LINE_BYTES + b'"}\n')
        self.hang()

    def closed_pipe(self) -> None:
        """Close the protocol's pipe and live on."""
        os.close(self._fd)
        threading.Event().wait()

    def deaf(self) -> None:
        """Stop reading requests, and die when the parent closes the pipe."""
        threading.Event().wait()


FAULTS: dict[str, Callable[[FaultyWorker], None]] = {
    name: getattr(FaultyWorker, name)
    for name in (
        "abort", "engine_abort", "cuda_out_of_memory", "device_lost", "segfault", "exit", "hang",
        "hang_stubbornly", "noise", "garbage", "wrong_version", "oversized", "closed_pipe",
        "deaf", "device",
    )
}  # fmt: skip


def host() -> DeviceMemory:
    """RAM as this engine uses it."""
    return DeviceMemory(device="host", total_bytes=HOST_BYTES)


def card(device: EngineDevice) -> DeviceMemory:
    """What a trial's buffers take of a graphics card."""
    return DeviceMemory(device=device.name, kv_cache_bytes=1, total_bytes=CARD_BYTES)


if __name__ == "__main__":
    pairs = (argument.split("@") for argument in sys.argv[1:] if "@" in argument)
    FaultyWorker({place: fault for fault, place in pairs}).serve()
