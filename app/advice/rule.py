"""What a rule is, and what it may look at."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from app.domain.finding import Actor, Severity
from app.domain.machine import Gpu, GpuKind, GpuSample, HostSample, Machine, PowerState
from app.domain.sweep import SweepPlan
from app.domain.trial import Trial

Value = str | int | float | None
Evidence = dict[str, Value]
"""What was read; its keys are the placeholders of the rule's texts."""

VENDOR_NAMES = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
HEADROOM_DISPLAY_BYTES = 512 << 20
HEADROOM_BYTES = 256 << 20
"""Memory kept free on a card with and without a display, where the user set nothing."""


@dataclass(frozen=True)
class Situation:
    """Everything rules may look at; what is not there simply lets no rule fire.

    Attributes:
        machine: Host, GPUs and engine.
        samples: Newest readings by GPU key, best probe first.
        host_sample: Newest reading of the host.
        plan: What a search is about to do.
        trials: What was measured.
        headroom_bytes: Memory the user wants free per device; ``None`` = the rule of the device.
    """

    machine: Machine
    samples: Mapping[str, tuple[GpuSample, ...]] = field(default_factory=dict)
    host_sample: HostSample | None = None
    plan: SweepPlan | None = None
    trials: tuple[Trial, ...] = ()
    headroom_bytes: int | None = None

    def reading(self, gpu: Gpu, name: str) -> float | None:
        """Return the newest value of a numeric field of ``GpuSample``, from the best probe."""
        values = (getattr(s, name) for s in self.samples.get(gpu.key, ()))
        return next((v for v in values if v is not None), None)

    def throttle(self, gpu: Gpu) -> tuple[str, ...]:
        """Return the reasons that slow a GPU down now."""
        known = (s.throttle for s in self.samples.get(gpu.key, ()))
        return next((t for t in known if t is not None), ())

    def held_back(self, gpu: Gpu, reasons: Collection[str], share_pct: float) -> bool:
        """Return whether one of ``reasons`` slows a GPU down now, or did so for some time.

        Args:
            gpu: The GPU.
            reasons: Names as in ``GpuSample.throttle``.
            share_pct: Share of the time since the reading before that counts, per cent: between
                two looks at the reasons a card may be slowed down unseen.
        """
        shares = (s.limited_pct for s in self.samples.get(gpu.key, ()))
        known = next((found for found in shares if found is not None), {})
        seen = any(known.get(reason, 0.0) > share_pct for reason in reasons)
        return seen or bool(set(self.throttle(gpu)) & set(reasons))

    def asleep(self, gpu: Gpu) -> bool:
        """Whether a GPU sleeps."""
        return any(s.power_state is PowerState.ASLEEP for s in self.samples.get(gpu.key, ()))

    def headroom(self, gpu: Gpu) -> int:
        """Return the memory that should stay free on a GPU."""
        if self.headroom_bytes is not None:
            return self.headroom_bytes
        shown = gpu.info is not None and gpu.info.drives_display
        return HEADROOM_DISPLAY_BYTES if shown else HEADROOM_BYTES


@dataclass(frozen=True)
class Rule:
    """A piece of advice as data, with the predicate that says when it applies.

    Attributes:
        id: Key of its texts.
        severity: How much it matters.
        actor: Who can apply the remedy.
        source: What it rests on.
        when: Yields the evidence once per occurrence; nothing where the rule does not apply.
    """

    id: str
    severity: Severity
    actor: Actor
    source: str
    when: Callable[[Situation], Iterator[Evidence]]


def name_of(gpu: Gpu) -> str:
    """Return the best name a GPU has."""
    if gpu.info is not None and gpu.info.name:
        return gpu.info.name
    if gpu.engine:
        return gpu.engine[0].description or gpu.engine[0].name
    vendor = VENDOR_NAMES.get(gpu.info.vendor or "") if gpu.info is not None else None
    return f"{vendor} GPU {gpu.key}" if vendor else gpu.key


def kind(gpu: Gpu) -> GpuKind:
    """Return what a GPU is; the engine's word counts where no probe sees it."""
    told = {d.kind for d in gpu.engine} & {GpuKind.SOFTWARE, GpuKind.REMOTE}
    if told:
        return told.pop()
    if gpu.info is not None and gpu.info.kind is not GpuKind.UNKNOWN:
        return gpu.info.kind
    return gpu.engine[0].kind if gpu.engine else GpuKind.UNKNOWN


def cards(machine: Machine, vendor: str | None = None) -> Iterator[Gpu]:
    """Yield the graphics cards that a probe sees, of one vendor or all."""
    for gpu in machine.gpus:
        if gpu.info is None or kind(gpu) is not GpuKind.DISCRETE:
            continue
        if vendor is None or gpu.info.vendor == vendor:
            yield gpu


def integrated(machine: Machine) -> Iterator[Gpu]:
    """Yield the GPUs inside processors."""
    yield from (gpu for gpu in machine.gpus if kind(gpu) is GpuKind.INTEGRATED)


def mib(n_bytes: float) -> int:
    """Return whole MiB."""
    return int(n_bytes) >> 20


def gib(n_bytes: float) -> float:
    """Return GiB with one decimal."""
    return round(n_bytes / (1 << 30), 1)


def seconds(ms: int) -> int | float:
    """Return a time limit in seconds; a whole number stays one, because nobody measured it."""
    return ms // 1000 if ms % 1000 == 0 else ms / 1000
