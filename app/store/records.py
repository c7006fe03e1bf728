"""What the store keeps, as values."""

from app.domain.draft import DraftResult
from app.domain.events import GenerationFinished
from app.domain.machine import EngineInfo, Machine
from app.domain.model import ModelSpec
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import Goal, Recommended, SweepPlan, SweepRequest, SweepStatus
from app.domain.trial import Rate


class SweepFingerprint(Record, frozen=True, kw_only=True):
    """What must be the same for measured trials to stay valid.

    Attributes:
        model: ``ModelSpec.fingerprint``.
        engine: Build of llama.cpp and its backends.
        driver: GPU drivers.
        devices: Devices the search may use, with their memory.
        power_source: AC or battery.
        goal: What the search is for.
    """

    model: str
    engine: str
    driver: str
    devices: tuple[str, ...]
    power_source: str
    goal: str


_RESUMABLE = (None, SweepStatus.CANCELLED, SweepStatus.FAILED)


class StoredSweep(Record, frozen=True, kw_only=True):
    """A sweep without its trials.

    Attributes:
        id: Number of the sweep.
        created_utc: RFC 3339 time of the start.
        status: How it ended; ``None`` = it did not (running, or interrupted).
        request: What was asked.
        plan: What was planned.
        fingerprint: What it was measured with.
        policy_version: Version of the search policy.
        model_name: Name of the model.
        model_path: Where the model was last seen.
        n_trials: Trials stored.
        recommended: The answer, if there is one.
        name: The user's name for it; empty = none given.
    """

    id: int
    created_utc: str
    status: SweepStatus | None
    request: SweepRequest
    plan: SweepPlan
    fingerprint: SweepFingerprint
    policy_version: int
    model_name: str
    model_path: str
    n_trials: int
    recommended: Recommended | None
    name: str = ""

    @property
    def can_resume(self) -> bool:
        """Whether a search of the same kind can go on from what this one measured."""
        return self.status in _RESUMABLE and self.n_trials > 0


class Profile(Record, frozen=True, kw_only=True):
    """Settings worth keeping for one model on one machine.

    Attributes:
        id: Short id; empty in a draft, given by ``Store.save_profile``.
        name: The user's name for it.
        settings: Concrete settings.
        model_fingerprint: ``ModelSpec.fingerprint``.
        model_name: Name of the model.
        model_path: Where the model was last seen.
        n_layer: Repeating blocks of the model, if it was seen.
        goal: What it was tuned for.
        prefill_tok_s: Prefill speed at the goal's depth, if measured.
        decode_tok_s: Decode speed at the goal's depth, if measured.
        request_s: Seconds for the goal's whole request, if measured.
        device_bytes: Need per device.
        device_keys: Engine device → identity of the card behind it when it was measured.
        machine: Name of CPU and GPUs.
        engine: Build it was measured with.
        sweep_id: Sweep it comes from, if any.
        draft: Drafted tokens that proved a gain on it, if any.
        created_utc: RFC 3339 time; empty in a draft.
    """

    id: str = ""
    name: str
    settings: Settings
    model_fingerprint: str
    model_name: str
    model_path: str
    n_layer: int | None = None
    goal: Goal | None = None
    prefill_tok_s: Rate | None = None
    decode_tok_s: Rate | None = None
    request_s: float | None = None
    device_bytes: dict[str, int] = {}
    device_keys: dict[str, str] = {}
    machine: str = ""
    engine: str = ""
    sweep_id: int | None = None
    draft: DraftResult | None = None
    created_utc: str = ""


class Conversation(Record, frozen=True, kw_only=True):
    """A chat without its messages.

    Attributes:
        id: Number of the conversation.
        title: Shown in the list.
        system: System prompt.
        model_name: Model it was last held with.
        model_path: Its file; empty = not known.
        profile_id: Profile it was last held with, if any.
        created_utc: RFC 3339 time of the start.
        updated_utc: RFC 3339 time of the last message.
    """

    id: int
    title: str
    system: str = ""
    model_name: str = ""
    profile_id: str | None = None
    model_path: str = ""
    created_utc: str
    updated_utc: str


class StoredMessage(Record, frozen=True, kw_only=True):
    """One turn. Turns form a tree: editing or regenerating adds a sibling.

    Attributes:
        id: Number of the message, growing with time.
        parent_id: The turn it answers; ``None`` for a first turn.
        role: ``user`` or ``assistant``.
        content: The text.
        reasoning: What the model thought before it; not searched.
        timing: How it was generated, for a finished answer.
        created_utc: RFC 3339 time.
    """

    id: int
    parent_id: int | None
    role: str
    content: str
    reasoning: str = ""
    timing: GenerationFinished | None = None
    created_utc: str


class SearchHit(Record, frozen=True, kw_only=True):
    """A message that contains what was searched for."""

    conversation_id: int
    title: str
    message: StoredMessage


class CalibrationKey(Record, frozen=True, kw_only=True):
    """What the memory llama.cpp does not count depends on.

    Attributes:
        device: ``Gpu.key``.
        driver: Driver and version.
        backend: Engine backend.
        flash_attn: Whether flash attention is on.
        n_ubatch: Physical prompt batch, tokens.
        cpu_layers: Whether some layers stay on the CPU.
        depth_bucket: Highest depth of the bucket, tokens.
        family: Model architecture.
    """

    device: str
    driver: str
    backend: str
    flash_attn: bool
    n_ubatch: int
    cpu_layers: bool
    depth_bucket: int
    family: str


class Calibration(Record, frozen=True, kw_only=True):
    """Largest sizes seen for one key, bytes, over ``n_loads`` real loads."""

    key: CalibrationKey
    driver_context_bytes: int
    growth_bytes: int
    n_loads: int = 1


def engine_name(engine: EngineInfo | None) -> str:
    """Return what identifies an engine build in one line; empty without an engine."""
    if engine is None:
        return ""
    build = engine.commit or engine.llama_version
    return f"llama.cpp {build} ({engine.version}; {', '.join(engine.backends)})"


def is_same_build(first: str, second: str) -> bool:
    """Whether two engine names are of one build; drivers change its backends only."""
    return first.partition(";")[0] == second.partition(";")[0]


def machine_name(machine: Machine) -> str:
    """Return CPU and GPUs in one line."""
    gpus = [g.info.name if g.info and g.info.name else g.key for g in machine.gpus]
    return " + ".join([machine.host.cpu_name or machine.host.os, *gpus])


def sweep_fingerprint(
    model: ModelSpec, machine: Machine, request: SweepRequest
) -> SweepFingerprint:
    """Return what a sweep of ``request`` is measured with here and now."""
    engine = machine.engine
    found = engine.devices if engine else ()
    devices = [d for d in found if not request.devices or d.name in request.devices]
    drivers = {g.info.driver for g in machine.gpus if g.info and g.info.driver}
    return SweepFingerprint(
        model=model.fingerprint,
        engine=engine_name(engine),
        driver=", ".join(sorted(drivers)),
        devices=tuple(f"{d.name} {d.description} {d.total_bytes or '?'}" for d in devices),
        power_source=machine.host.power_source,
        goal=request.goal,
    )


def what_changed(before: SweepFingerprint, now: SweepFingerprint) -> tuple[str, ...]:
    """Return the names of the fingerprint's fields that differ, in order."""
    fields = SweepFingerprint.__struct_fields__
    return tuple(f for f in fields if getattr(before, f) != getattr(now, f))
