"""A session that plays a recorded machine, search and chat, with real threads behind it."""

import threading
import time
from array import array
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import (
    ChatEvent,
    GenerationFinished,
    GenerationStarted,
    ServerEvent,
    ServerProgress,
    ServerStarted,
    SweepEvent,
    SweepFinished,
    SweepPaused,
    SweepPlanned,
    TokenGenerated,
    TrialFinished,
    TrialProgress,
)
from app.domain.finding import Check, CheckStatus
from app.domain.machine import GpuSample, HostSample, Machine
from app.domain.memory import Verdict
from app.domain.model import ModelSpec
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import SweepRequest, SweepResult, SweepStatus
from app.domain.trial import Rate
from app.domain.units import MIB, NS_PER_S
from app.power.changes import Change, Pending
from app.power.choice import PowerChoice
from app.power.keeper import DeviceState  # noqa: TC001 - as the other names here
from app.power.protocol import PutBack
from app.session.capsweep import CapsEvent
from app.session.engine_verdict import EngineChecked, Speeds
from app.session.engines import EngineName, EngineStanding
from app.session.power_views import EnergyReport, PowerState
from app.session.results import Recheck
from app.session.views import Estimate, ModelEntry
from app.store import Store
from app.store.records import Profile, StoredSweep, SweepFingerprint
from app.worker.protocol import (
    MAX_LINE_BYTES,
    ChatMessage,
    Sampling,
    TemplateChecked,
    TokenizeFinished,
)
from tests.fakes import power_data
from tests.fakes import window_data as data

ANSWER = (
    "A **KV cache** keeps what the model has already read.\n\n"
    "- Each token adds `n_layer × n_head_kv × 2` vectors.\n- It grows with the context.\n\n"
    "```python\nkv_bytes = n_ctx * n_layer * 2 * n_embd_kv * 2\n```\n"
)


class Series(NamedTuple):
    """A column of the made-up telemetry."""

    t_s: "array[float]"
    values: "array[float]"


class FakeTelemetry:
    """A minute of readings; ``push`` adds one and tells the subscribers, on any thread."""

    def __init__(self, n_seconds: int = 60) -> None:
        """Make up the past."""
        now = time.perf_counter_ns()
        times = [now - s * NS_PER_S for s in range(n_seconds, 0, -1)]
        self.samples = [data.gpu_sample(t, i) for i, t in enumerate(times)]
        self.host = [data.host_sample(t, i) for i, t in enumerate(times)]
        self.interval_s: float | None = None
        self.is_stalled = False
        self.subscribers: list[Callable[[str, GpuSample | HostSample], None]] = []

    def push(self, sample: GpuSample | None = None) -> None:
        """Add a reading."""
        new = sample or data.gpu_sample(time.perf_counter_ns(), len(self.samples))
        self.samples.append(new)
        for subscriber in list(self.subscribers):
            subscriber(new.key, new)

    def subscribe(
        self, callback: Callable[[str, GpuSample | HostSample], None]
    ) -> Callable[[], None]:
        """Call ``callback`` with what ``push`` adds."""
        self.subscribers.append(callback)
        return lambda: self.subscribers.remove(callback)

    def set_interval(self, interval_s: float | None) -> None:
        """Remember the pace."""
        self.interval_s = interval_s

    def latest(self, key: str) -> tuple[GpuSample, ...]:
        """Return the newest reading."""
        if key == data.ASLEEP_KEY:
            return (data.asleep_sample(time.perf_counter_ns()),)
        return (self.samples[-1],)

    def latest_host(self) -> HostSample | None:
        """Return the newest reading of the host."""
        return self.host[-1]

    def is_stale(self, sample: GpuSample | HostSample) -> bool:
        """Whether the probes are said to hang."""
        return self.is_stalled

    def series(self, key: str, field: str) -> Series | None:
        """Return a column."""
        if key == data.ASLEEP_KEY:
            return None
        rows: list[GpuSample] | list[HostSample] = self.host if key == "host" else self.samples
        values = [getattr(r, field) for r in rows]
        return Series(
            array("d", [r.t_ns / NS_PER_S for r in rows]),
            array("d", [float("nan") if v is None else v for v in values]),
        )


class FakeChat:
    """An engine that streams ``ANSWER`` word by word."""

    def __init__(self, session: "FakeSession") -> None:
        """Prepare; nothing is loaded."""
        self._session = session
        self.settings = data.settings(28)
        self.spec = data.SPEC
        self.template = ""
        self.stop: tuple[str, ...] = ()
        self.pid: int | None = 4021
        self.profile_id: str | None = "ab12"
        self.has_template = session.has_template
        self.notes: tuple[str, ...] = session.chat_notes
        self.is_running = False

    def load(self) -> Iterator[TrialProgress]:
        """Load in two steps, or fail as the session is told to."""
        if self._session.problem is not None:
            raise self._session.problem
        yield TrialProgress(phase="load", frac=0.5)
        while self._session.holds_load:
            time.sleep(0.01)
            yield TrialProgress(phase="load", frac=0.6)
        self.is_running = True

    def close(self) -> None:
        """Unload."""
        if self.is_running:
            self._session.n_unloads += 1
        self.is_running = False

    def tokenize(self, text: str) -> int:
        """Return a token per word; refuse what the engine does not take either."""
        if len(text) > MAX_LINE_BYTES:
            raise EnvironmentProblem("text_too_long", "The text is larger than 1 MiB.")
        return len(text.split())

    def count_prompt(self, messages: tuple[ChatMessage, ...]) -> TokenizeFinished:
        """Return a token per word and three for each turn's markers."""
        per_message = tuple(self.tokenize(m.content) for m in messages)
        return TokenizeFinished(n_tok=sum(per_message) + 3 * len(messages), per_message=per_message)

    def check_template(self) -> TemplateChecked:
        """Return what the session says of the template."""
        return self._session.checked

    def idle_left_s(self) -> float | None:
        """Return what the session says."""
        return self._session.idle_left_s

    def unload_if_idle(self) -> bool:
        """Unload when the session's clock has run out."""
        if self._session.idle_left_s > 0:
            return False
        self.close()
        return True

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Stream the answer; the session may hold it, or break it in the middle."""
        self._session.asked.append(messages)
        self._session.asked_with.append((sampling, self.template, self.stop))
        n_prompt = self.count_prompt(messages).n_tok
        yield GenerationStarted(n_prompt=n_prompt, n_prompt_reused=0, n_ctx=4096, template="model")
        if n_prompt >= self._session.refuses_from:
            self._session.wait_if_held()
            yield GenerationFinished(reason="context_full", n_prompt=n_prompt)
            return
        if self._session.reasoning:
            yield TokenGenerated(text=self._session.reasoning, n_tok=1, kind="reasoning")
        words = self._session.answer.split(" ")
        for index, word in enumerate(words):
            if index == len(words) // 2:
                self._session.wait_if_held()
                if self._session.breaks:
                    self.is_running = False
                    error = ErrorInfo(code="crashed", message="The engine ended.", hint="Restart.")
                    yield GenerationFinished(reason="error", n_prompt=20, n_gen=index, error=error)
                    return
            yield TokenGenerated(text=("" if index == 0 else " ") + word, n_tok=index + 1)
        yield GenerationFinished(
            reason="stop", n_prompt=640, n_prompt_reused=600, n_gen=len(words), ttft_ms=212.0,
            prefill_tok_s=1930.0, decode_tok_s=39.7,
        )  # fmt: skip

    def __enter__(self) -> Self:
        """Load."""
        list(self.load())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Unload."""
        self.close()


class FakePower:
    """Heat and power of a card that is warm.

    Attributes:
        chosen: What was chosen, in order.
        left: What an earlier run left changed.
        problem: Raised instead of restoring what is left.
    """

    def __init__(self) -> None:
        """Govern one device, nothing pending."""
        self.choice = PowerChoice()
        self.chosen: list[PowerChoice] = []
        self.left: tuple[Pending, ...] = ()
        self.problem: EnvironmentProblem | None = None
        self.devices: tuple[DeviceState, ...] = (power_data.power_device(),)
        self.conversation: EnergyReport | None = None
        self.is_paused = False

    @property
    def state(self) -> PowerState:
        """How it stands."""
        return PowerState(
            choice=self.choice, devices=self.devices, is_paused=self.is_paused,
            conversation=self.conversation,
        )  # fmt: skip

    def choose(self, choice: PowerChoice) -> None:
        """Remember the choice."""
        self.choice = choice
        self.chosen.append(choice)

    def restore(self) -> None:
        """Pause."""
        self.is_paused = True

    def resume(self) -> None:
        """Go on."""
        self.is_paused = False

    def history(self, n: int = 50) -> tuple[Change, ...]:
        """Return two changes."""
        return power_data.POWER_CHANGES[-n:]

    def pending(self) -> tuple[Pending, ...]:
        """Return what is left."""
        return self.left

    def restore_pending(self) -> tuple[PutBack, ...]:
        """Put it back, or fail as told to."""
        if self.problem is not None:
            raise self.problem
        self.left = ()
        return ()


class FakeServer:
    """A server that answers nobody; the session says how many asked, and may refuse to start."""

    token = "secret-token"
    alias = "Qwen2.5 7B Instruct"

    def __init__(self, session: "FakeSession") -> None:
        """Prepare."""
        self._session = session

    def run(self, port: int = 0) -> Generator[ServerEvent, None, None]:
        """Serve until closed."""
        if self._session.problem is not None:
            raise self._session.problem
        yield ServerStarted(port=port or 40404, effective=data.settings(28), devices=())
        while True:
            yield ServerProgress(n_requests=self._session.server_requests, n_active=1)
            time.sleep(0.01)


class FakeSession:
    """Plays ``tests.fakes.window_data``.

    Attributes:
        gate: While clear, a search stops before trial ``hold_at`` and an answer in its middle.
        pause_at: The trial after which a search asks whether to go on; 0 = never.
        plan_gate: While clear, a search makes its plan and hears no cancel, as in a dry run.
        problem: Raised instead of a search, a model or a chat.
        crash: Raised in the middle of a search, as a bug would be.
        chat_notes: What a chat says when its model is loaded.
        breaks: Whether an answer ends with a dead engine.
        refuses_from: Words of a prompt from which on it does not fit.
    """

    def __init__(self, machine: Machine = data.MACHINE, *, has_results: bool = True) -> None:
        """Play ``machine``."""
        self._machine = machine
        self._has_results = has_results
        self.fake_telemetry = FakeTelemetry()
        self.power = FakePower()
        self.gate = threading.Event()
        self.gate.set()
        self.hold_at = 6
        self.pause_at = 0
        self.plan_gate = threading.Event()
        self.plan_gate.set()
        self.problem: EnvironmentProblem | None = None
        self.crash: Exception | None = None
        self.chat_notes: tuple[str, ...] = ()
        self.breaks = False
        self.refuses_from = 1 << 30
        self.has_template = True
        self.asked: list[tuple[ChatMessage, ...]] = []
        # --- chat: what its page needs besides; see FakeChat
        self.asked_with: list[tuple[Sampling | None, str, tuple[str, ...]]] = []
        self.answer = ANSWER
        self.reasoning = ""
        self.checked = TemplateChecked(template="text", findings=())
        self.idle_left_s = 900.0
        self.n_unloads = 0
        self.server_requests = 2
        self.holds_load = False
        self._store: Store | None = None
        self.requests: list[tuple[str, SweepRequest]] = []
        self.resume_note = "resumed"
        self.is_closed = False
        self.names: dict[int, str] = {}
        self.deleted: set[int] = set()
        self.changed: tuple[str, ...] = ()
        self.is_purged = False
        self.folders: tuple[str, ...] = ()
        self.fake_engines = FakeEngines(self)

    def wait_if_held(self, cancel: threading.Event | None = None) -> None:
        """Wait for the gate, or for a cancel."""
        while not self.gate.wait(0.02):
            if cancel is not None and cancel.is_set():
                return

    def machine(self, *, refresh: bool = False) -> Machine:
        """Return the machine."""
        return self._machine

    def telemetry(self, interval_s: float | None = None) -> FakeTelemetry:
        """Return the readings."""
        return self.fake_telemetry

    def doctor(self) -> Iterator[Check]:
        """Give the steps one after the other, the second once the gate is open."""
        if self.problem is not None:
            raise self.problem
        yield Check(id="engine", status=CheckStatus.OK, text="The engine starts.")
        self.wait_if_held()
        text, hint = "A trial on CUDA0 failed.", "Update the driver."
        yield Check(id="trial_CUDA0", status=CheckStatus.PROBLEM, text=text, hint=hint)

    def models(self, folders: tuple[str, ...] = ()) -> tuple[ModelEntry, ...]:
        """Return the demo model and three others, one of them broken."""
        self.folders = folders
        return (
            ModelEntry(id="demo", origin="rigtune", name="Gemma 3 270M (demo)", path="/models/demo",
                       file_bytes=241 * MIB, arch="gemma3", quant="Q4_K_M", verdict=Verdict.FITS),
            ModelEntry(id="lmstudio:qwen", origin="LM Studio", name="Qwen2.5-7B-Instruct-Q4_K_M",
                       path=data.SPEC.path, file_bytes=data.SPEC.file_bytes, arch="qwen2",
                       quant="Q4_K_M", verdict=Verdict.FITS),
            ModelEntry(id="ollama:mixtral", origin="Ollama", name="mixtral:8x7b",
                       path="/models/mixtral", file_bytes=26442 * MIB, arch="llama",
                       quant="Q4_0", verdict=Verdict.DOES_NOT_FIT),
            ModelEntry(id="hf:broken", origin="Hugging Face", name="org/half-a-download.gguf",
                       path="/models/half.gguf", file_bytes=800 * MIB,
                       problem="half.gguf: download incomplete: the file ends inside its header, "
                       "after 4096 bytes."),
        )  # fmt: skip

    def inspect(self, model: str) -> ModelSpec:
        """Return the made-up model."""
        if self.problem is not None:
            raise self.problem
        return data.SPEC

    def default_settings(self, spec: ModelSpec, n_ctx: int) -> Settings:
        """Return all layers that fit."""
        return data.settings(29 if n_ctx <= 8192 else 24, n_ctx=n_ctx)

    def estimate(self, spec: ModelSpec, settings: Settings) -> Estimate:
        """Return the made-up need."""
        return Estimate(
            settings=settings, estimate=data.memory(settings.n_gpu_layers, settings.n_ctx),
            max_n_gpu_layers=settings.n_gpu_layers, max_n_ctx=16384,
        )  # fmt: skip

    def tune(
        self,
        model: str,
        request: SweepRequest,
        *,
        resume: bool = False,
        cancel: threading.Event,
    ) -> Iterator[SweepEvent]:
        """Play the search; a cancel ends it with what was measured."""
        self.requests.append((model, request))
        found = self.resume_note if resume else ""
        self.plan_gate.wait()
        if self.problem is not None:
            raise self.problem
        n_trials = 0
        for event in data.events():
            if cancel.is_set() and not isinstance(event, SweepPlanned):
                stopped = data.result(SweepStatus.CANCELLED, n_trials)
                yield SweepFinished(result=stopped)
                return
            if found and isinstance(event, SweepPlanned):
                notes = (*event.plan.notes, found)
                event = SweepPlanned(plan=msgspec.structs.replace(event.plan, notes=notes))  # noqa: PLW2901
            yield event  # type: ignore[misc]
            if isinstance(event, TrialFinished):
                n_trials += 1
                if n_trials == self.pause_at:
                    yield SweepPaused(code="power_source_changed")
                if n_trials == self.hold_at:
                    self.wait_if_held(cancel)
                    if self.crash is not None:
                        raise self.crash

    def sweep_caps(
        self, model: str, settings: Settings, *, cancel: threading.Event
    ) -> Iterator[CapsEvent]:
        """Play a cap sweep of two limits; the gate holds it after the first."""
        yield from power_data.caps_events()[:3]
        self.wait_if_held(cancel)
        yield power_data.caps_result(1 if cancel.is_set() else 2)

    def sweeps(self) -> tuple[StoredSweep, ...]:
        """Return two stored searches."""
        if not self._has_results:
            return ()
        mark = SweepFingerprint(
            model="f1", engine="b6700", driver="580", devices=(), power_source="ac", goal="chat"
        )
        whole = StoredSweep(
            id=2, created_utc="2026-01-12T18:20:00Z", status=SweepStatus.COMPLETE,
            request=SweepRequest(), plan=data.PLAN, fingerprint=mark, policy_version=1,
            model_name=data.SPEC.name, model_path=data.SPEC.path, n_trials=len(data.TRIALS),
            recommended=data.recommended(0, 6.9, "ab12"),
        )  # fmt: skip
        part = msgspec.structs.replace(
            whole,
            id=1,
            created_utc="2026-01-11T09:02:00Z",
            status=SweepStatus.CANCELLED,
            n_trials=6,
        )
        found = (msgspec.structs.replace(s, name=self.names.get(s.id, "")) for s in (whole, part))
        return tuple(s for s in found if s.id not in self.deleted)

    def results(self) -> "FakeResults":
        """Return what can be done with them."""
        return FakeResults(self)

    def sweep(self, sweep_id: int) -> SweepResult:
        """Return a stored answer."""
        return data.result() if sweep_id == 2 else data.result(SweepStatus.CANCELLED, 6)

    def engines(self) -> "FakeEngines":
        """Return the two engines."""
        return self.fake_engines

    def measuring(self, purpose: str) -> AbstractContextManager[None]:
        """Hold nothing."""
        return nullcontext()

    def profiles(self) -> tuple[Profile, ...]:
        """Return one profile."""
        if not self._has_results:
            return ()
        point = data.recommended(0, 6.9, "ab12")
        return (
            Profile(id="ab12", name="Qwen chat", settings=point.settings, model_fingerprint="f1",
                    model_name=data.SPEC.name, model_path=data.SPEC.path,
                    decode_tok_s=point.decode_tok_s),
        )  # fmt: skip

    def export(self, profile_id: str, form: str) -> str:
        """Return a command."""
        return f"llama-server --n-gpu-layers 28 # {form} {profile_id}"

    def chat(self, model: str, profile_id: str | None = None) -> FakeChat:
        """Return the engine that answers."""
        return FakeChat(self)

    # --- chat -----------------------------------------------------------------------------

    def serve(self, model: str, profile_id: str | None = None) -> FakeServer:
        """Return a server that counts to ``server_requests``."""
        return FakeServer(self)

    def store(self) -> Store:
        """Return a real store, in the test's own folder."""
        if self._store is None:
            self._store = Store.open()
        return self._store

    def close(self) -> None:
        """Remember that it was closed."""
        self.is_closed = True
        if self._store is not None:
            self._store.close()


class FakeEngines:
    """An engine and, where ``has_previous`` says so, the one from before an upgrade."""

    def __init__(self, session: FakeSession) -> None:
        """Start with today's."""
        self._session = session
        self.in_use = EngineName.CURRENT
        self.has_previous = False
        self.problem: EnvironmentProblem | None = None

    def standing(self, machine: Machine) -> EngineStanding:
        """Return how it stands; an engine to go back to means that profiles are of another."""
        return EngineStanding(
            in_use=self.in_use, has_previous=self.has_previous, build=f"llama.cpp {self.in_use}",
            outdated=self._session.profiles() if self.has_previous else (),
        )  # fmt: skip

    def use(self, name: EngineName) -> None:
        """Switch, or fail as told to."""
        if self.problem is not None:
            raise self.problem
        self.in_use = name

    def check(self, profile_id: str) -> Generator[TrialProgress | EngineChecked, None, None]:
        """Find six per cent less, unless the gate is held: then wait for the cancel."""
        yield TrialProgress(phase="decode")
        while not self._session.gate.is_set():
            time.sleep(0.01)
            yield TrialProgress(phase="decode")
        speeds = [
            Speeds(prefill_tok_s=rate, decode_tok_s=rate, request_s=6.9)
            for rate in (Rate(median=m, low=m, high=m) for m in (41.2, 38.9))
        ]
        yield EngineChecked(
            profile_id=profile_id, profile_name="Qwen chat", verdict="slower", against="previous",
            reference=speeds[0], current=speeds[1],
        )  # fmt: skip


class FakeResults:
    """What can be done with the session's two searches; remembers what was asked."""

    def __init__(self, session: FakeSession) -> None:
        """Act on ``session``."""
        self._session = session

    def rename(self, sweep_id: int, name: str) -> None:
        """Remember the name."""
        self._session.names[sweep_id] = name

    def delete(self, sweep_id: int) -> None:
        """Hide a search."""
        self._session.deleted.add(sweep_id)

    def restore(self, sweep_id: int) -> None:
        """Show it again."""
        self._session.deleted.discard(sweep_id)

    def purge(self) -> None:
        """Remember that undo has ended."""
        self._session.is_purged = True

    def write_json(self, sweep_id: int) -> bytes:
        """Return something to write."""
        return b'{"sweep": %d}' % sweep_id

    def read_json(self, data: bytes) -> int:
        """Accept what ``write_json`` gave, refuse the rest."""
        if not data.startswith(b'{"sweep"'):
            raise EnvironmentProblem("not_a_result", "The file holds no RigTune result.", "Other.")
        return 1

    def changed(self, sweep: StoredSweep) -> tuple[str, ...]:
        """Return what the session was told."""
        return self._session.changed

    def recheck(
        self, sweep: StoredSweep, cancel: threading.Event
    ) -> Iterator[TrialProgress | Recheck]:
        """Find six per cent less."""
        yield TrialProgress(phase="decode")
        while not self._session.gate.is_set():
            if cancel.is_set():
                return
            time.sleep(0.01)
            yield TrialProgress(phase="decode")
        before = Rate(median=41.2, low=41.0, high=41.4)
        now = Rate(median=38.9, low=38.7, high=39.1)
        yield Recheck(
            sweep_id=sweep.id, before=before, now=now, outcome=Outcome.OK,
            difference_frac=-0.0558, is_outside_noise=True, changed=self._session.changed,
        )  # fmt: skip
