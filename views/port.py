"""What the window needs of the session; tests give it a recorded one."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import threading
    from collections.abc import Generator, Iterator
    from contextlib import AbstractContextManager

    from app.domain.errors import ErrorInfo
    from app.domain.events import ChatEvent, RigEvent, ServerEvent, SweepEvent, TrialProgress
    from app.domain.finding import Check
    from app.domain.machine import Machine
    from app.domain.model import ModelSpec
    from app.domain.settings import Settings
    from app.domain.sweep import SweepRequest, SweepResult
    from app.power.changes import Change, Pending
    from app.power.choice import PowerChoice
    from app.power.protocol import PutBack
    from app.session import Estimate, ModelEntry
    from app.session.capsweep import CapsEvent
    from app.session.engine_verdict import EngineChecked
    from app.session.engines import EngineName
    from app.session.power_views import PowerState
    from app.session.results import Recheck
    from app.store import Store
    from app.store.records import Profile, StoredSweep
    from app.worker.protocol import ChatMessage, Sampling, TemplateChecked, TokenizeFinished
    from views.feed import TelemetryPort


class PowerPort(Protocol):
    """Heat and power. ``state`` may be asked on the GUI thread; everything else may block."""

    @property
    def state(self) -> "PowerState":
        """How things stand."""
        ...

    @property
    def choice(self) -> "PowerChoice":
        """What the user chose, now or in an earlier run."""
        ...

    def choose(self, choice: "PowerChoice") -> None:
        """Follow another choice from now on."""
        ...

    def restore(self) -> None:
        """Put everything back and turn nothing until ``resume``."""
        ...

    def resume(self) -> None:
        """Govern again."""
        ...

    def history(self, n: int = ...) -> "tuple[Change, ...]":
        """Return the newest changes, oldest first."""
        ...

    def pending(self) -> "tuple[Pending, ...]":
        """Return devices that an earlier run left changed."""
        ...

    def restore_pending(self) -> "tuple[PutBack, ...]":
        """Put back what an earlier run left behind; the system asks for a password."""
        ...


class ChatPort(Protocol):
    """An engine that answers, on concrete settings.

    Attributes:
        template: Who writes the prompts, as ``app.session.Chat``.
        stop: Strings that end answers.
    """

    template: str
    stop: "tuple[str, ...]"

    @property
    def spec(self) -> "ModelSpec":
        """The model."""
        ...

    @property
    def pid(self) -> int | None:
        """Process id of the engine, while there is one."""
        ...

    @property
    def settings(self) -> "Settings":
        """What it runs on."""
        ...

    @property
    def profile_id(self) -> str | None:
        """The profile those settings come from, if any."""
        ...

    @property
    def has_template(self) -> bool:
        """Whether the model says how a conversation is written."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences the user should read first."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether it can answer: loaded and alive."""
        ...

    def load(self) -> "Iterator[TrialProgress]":
        """Load the model (again, after a crash)."""
        ...

    def close(self) -> None:
        """Unload the model."""
        ...

    def generate(
        self,
        messages: "tuple[ChatMessage, ...]",
        sampling: "Sampling | None" = None,
        max_tokens: int | None = None,
    ) -> "Iterator[ChatEvent]":
        """Stream an answer; closing the iterator cancels it within one token."""
        ...

    def tokenize(self, text: str) -> int:
        """Return the number of tokens of a text."""
        ...

    def count_prompt(self, messages: "tuple[ChatMessage, ...]") -> "TokenizeFinished":
        """Return the tokens of a prompt, and of each turn alone."""
        ...

    def check_template(self) -> "TemplateChecked":
        """Return what is wrong with the template that would be used."""
        ...

    def idle_left_s(self) -> float | None:
        """Return seconds until ``unload_if_idle`` would unload."""
        ...

    def unload_if_idle(self) -> bool:
        """Unload the model if nobody asked for long; return whether it did."""
        ...


class ServerPort(Protocol):
    """A model served to other programs."""

    @property
    def token(self) -> str:
        """What clients send as API key."""
        ...

    @property
    def alias(self) -> str:
        """Name of the model towards clients."""
        ...

    def run(self, port: int = 0) -> "Generator[ServerEvent, None, None]":
        """Load and serve until the generator is closed."""
        ...


class ResultsPort(Protocol):
    """What can be done with stored searches. Calls block: never on the GUI thread."""

    def rename(self, sweep_id: int, name: str) -> None:
        """Give a search, and the profile made from it, a name."""
        ...

    def delete(self, sweep_id: int) -> None:
        """Hide a search until ``restore`` or ``purge``."""
        ...

    def restore(self, sweep_id: int) -> None:
        """Undo ``delete``."""
        ...

    def purge(self) -> None:
        """Delete for good what is hidden."""
        ...

    def write_json(self, sweep_id: int) -> bytes:
        """Return a search as a file."""
        ...

    def read_json(self, data: bytes) -> int:
        """Store a search from a file and return its number."""
        ...

    def changed(self, sweep: "StoredSweep") -> tuple[str, ...]:
        """Return what has changed since a search: ``engine``, ``driver``."""
        ...

    def recheck(
        self, sweep: "StoredSweep", cancel: "threading.Event"
    ) -> "Iterator[RigEvent | Recheck]":
        """Measure a recommendation again; the last event is the ``Recheck``."""
        ...


class EngineStandingPort(Protocol):
    """Which engine serves, as ``app.session.EngineStanding``."""

    @property
    def in_use(self) -> "EngineName | None":
        """Which one; ``None`` = libraries of the user's own."""
        ...

    @property
    def has_previous(self) -> bool:
        """Whether there is an engine to go back to."""
        ...

    @property
    def build(self) -> str | None:
        """The build in use, where it is known."""
        ...

    @property
    def error(self) -> "ErrorInfo | None":
        """Why it does not start."""
        ...

    @property
    def outdated(self) -> "tuple[Profile, ...]":
        """Profiles that another build measured."""
        ...


class EnginesPort(Protocol):
    """This RigTune's engine and the one from before the last upgrade. Calls block."""

    def standing(self, machine: "Machine") -> EngineStandingPort:
        """Return which one serves, without starting any."""
        ...

    def use(self, name: "EngineName") -> None:
        """Run searches and chats on it from now on."""
        ...

    def check(self, profile_id: str) -> "Generator[RigEvent | EngineChecked, None, None]":
        """Measure a profile with both in turns; the last event is the comparison."""
        ...


class SessionPort(Protocol):
    """The façade of the core. Calls may block: never on the GUI thread."""

    @property
    def power(self) -> PowerPort:
        """Heat and power."""
        ...

    def machine(self, *, refresh: bool = False) -> "Machine":
        """Return host, GPUs and engine."""
        ...

    def telemetry(self, interval_s: float | None = None) -> "TelemetryPort":
        """Return the live readings, one every ``interval_s``."""
        ...

    def models(self, folders: tuple[str, ...] = ()) -> "tuple[ModelEntry, ...]":
        """Return the models found on this machine, those in ``folders`` included."""
        ...

    def doctor(self) -> "Iterator[Check]":
        """Yield the steps of the self-test as they end."""
        ...

    def inspect(self, model: str) -> "ModelSpec":
        """Read a model's header."""
        ...

    def default_settings(self, spec: "ModelSpec", n_ctx: int) -> "Settings":
        """Return what would be tried first."""
        ...

    def estimate(self, spec: "ModelSpec", settings: "Settings") -> "Estimate":
        """Say what a configuration needs."""
        ...

    def tune(
        self,
        model: str,
        request: "SweepRequest",
        *,
        resume: bool = False,
        cancel: "threading.Event",
    ) -> "Iterator[SweepEvent]":
        """Search; the plan comes first, and nothing is loaded before it is consumed."""
        ...

    def sweep_caps(
        self, model: str, settings: "Settings", *, cancel: "threading.Event"
    ) -> "Iterator[CapsEvent]":
        """Measure what each power limit gives; the last event is the result."""
        ...

    def sweeps(self) -> "tuple[StoredSweep, ...]":
        """Return the stored searches, newest first."""
        ...

    def sweep(self, sweep_id: int) -> "SweepResult":
        """Return a stored search with its trials."""
        ...

    def results(self) -> ResultsPort:
        """Return what can be done with stored searches."""
        ...

    def engines(self) -> EnginesPort:
        """Return the two engines."""
        ...

    def measuring(self, purpose: str) -> "AbstractContextManager[object]":
        """Hold the devices for ``purpose``."""
        ...

    def profiles(self) -> "tuple[Profile, ...]":
        """Return the stored profiles, newest first."""
        ...

    def export(self, profile_id: str, form: str) -> str:
        """Return a profile as another program's command or file."""
        ...

    def chat(self, model: str, profile_id: str | None = None) -> ChatPort:
        """Prepare a model for chatting; ``load`` loads it."""
        ...

    def serve(self, model: str, profile_id: str | None = None) -> ServerPort:
        """Prepare a model for serving; ``run`` loads it."""
        ...

    def store(self) -> "Store":
        """Return what RigTune keeps: conversations and drafts, for the chat."""
        ...

    def close(self) -> None:
        """End engines and release the devices."""
        ...
