"""Opens a rig of real workers for a model: memory verdicts, telemetry and devices wired in."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from app.advice.rules import blocker
from app.advice.text import render
from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.machine import EngineDevice, Gpu, GpuInfo, GpuKind, Machine
from app.domain.memory import MemoryEstimate
from app.domain.model import ModelSpec
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import SearchDevice, SearchHost
from app.domain.units import MIB
from app.machine import judged_memory, kind_of, search_devices
from app.memory import Memory, Overhead
from app.rig.cooling import CoolDown, TempNow
from app.rig.footprint import FreeNow
from app.rig.pins import Pin
from app.rig.process import Launch
from app.rig.workers import Plan, WorkerRig
from app.session.calibrating import known_overheads, learner
from app.session.readings import Readings, carve_out_bytes, named_gpus, probed_devices
from app.store import Calibration
from app.telemetry import Telemetry

# what a machine is taken for where the host does not say: never 0 cores or no RAM at all
_UNKNOWN_RAM = 8 << 30


def measurable(machine: Machine) -> Machine:
    """Return ``machine`` if measuring on it makes sense.

    Raises:
        EnvironmentProblem: Something must be mended first: the engine would silently measure
            the processor instead of the GPU.
    """
    finding = blocker(machine)
    if finding is not None:
        text = render("finding", finding.id, finding.evidence)
        raise EnvironmentProblem(finding.id, text, render("remedy", finding.id, finding.evidence))
    return machine


def runnable(spec: ModelSpec) -> ModelSpec:
    """Return ``spec`` if it is a model that writes text.

    Raises:
        EnvironmentProblem: It is a part of a model, or one that writes no text.
    """
    if spec.kind == "text":
        return spec
    why = spec.problems[0] if spec.problems else f"It is a {spec.kind} file."
    message = f"{spec.name} is no model that writes text. {why}"
    hint = "Choose a text model."
    if spec.kind in {"projector", "draft", "adapter"}:
        size = -(-spec.file_bytes // MIB)
        hint = f"Choose the text model it belongs to; --reserve {size} keeps room for this one."
    raise EnvironmentProblem("not_a_text_model", message, hint)


def search_host(machine: Machine) -> SearchHost:
    """Return CPU and RAM as the search wants them."""
    host = machine.host
    logical = host.cores_logical or 1
    return SearchHost(
        cores_physical=host.cores_performance or host.cores_physical or logical,
        cores_logical=logical,
        ram_bytes=host.ram_bytes or _UNKNOWN_RAM,
    )


def free_by_probe(machine: Machine, telemetry: Telemetry) -> FreeNow:
    """Return what asks the probes for a device's free memory now.

    An engine that lists devices holds a driver context itself, so its own figure is too small
    by that; the probes read from outside.
    """
    keys = {d.name: gpu.key for gpu in machine.gpus for d in gpu.engine}

    def free_now(name: str) -> int | None:
        telemetry.sample_now()
        samples = telemetry.latest(keys.get(name, name))
        # An overdue reading is no reading: memory that came back since would be waited for.
        fresh = [s for s in samples if not telemetry.is_stale(s)]
        return next((s.vram_free_bytes for s in fresh if s.vram_free_bytes is not None), None)

    return free_now


def temperature_by_probe(telemetry: Telemetry) -> TempNow:
    """Return what asks the probes for a GPU's temperature now, °C."""

    def temp_now(key: str) -> float | None:
        telemetry.sample_now()
        return next((s.temp_c for s in telemetry.latest(key) if s.temp_c is not None), None)

    return temp_now


def usable_devices(
    machine: Machine, wanted: tuple[str, ...] = (), free_now: FreeNow = lambda _: None
) -> tuple[SearchDevice, ...]:
    """Return the devices to use: all that make sense, or those named.

    Args:
        machine: The machine, engine included.
        wanted: Names of devices to use; empty = all that make sense.
        free_now: Asks for a device's free memory; ``None`` = as the engine lists it.

    Raises:
        UsageProblem: A named device is not there.
    """
    named = {d.name: (g, d) for g in machine.gpus for d in g.engine}
    _check_known(wanted, named)
    chosen = search_devices(machine)
    if wanted:
        # also by a name of the card that is not its first one
        chosen = tuple(_named(machine, *named[name]) for name in wanted)
    gpus = {name: gpu for name, (gpu, _) in named.items()}
    return tuple(_with_free(d, gpus[d.id], free_now(d.id)) for d in chosen)


def _check_known(wanted: tuple[str, ...], known: Collection[str]) -> None:
    for name in wanted:
        if name not in known:
            names = ", ".join(known) or "none besides the CPU"
            message = f"There is no device {name!r}."
            raise UsageProblem("unknown_device", message, f"Known: {names}.")


def _named(machine: Machine, gpu: Gpu, device: EngineDevice) -> SearchDevice:
    total, free = judged_memory(gpu, device, machine.host) or (0, 0)
    return SearchDevice(
        id=device.name,
        kind=kind_of(gpu).value,
        backend=device.backend,
        total_bytes=total,
        free_bytes=free,
    )


def _with_free(device: SearchDevice, gpu: Gpu, free_bytes: int | None) -> SearchDevice:
    """Return ``device`` with what is free now and may be used by one program (Windows' budget)."""
    free = device.free_bytes
    if free_bytes is not None and device.kind != GpuKind.INTEGRATED:
        free = min(free_bytes, device.total_bytes)
    budget = gpu.info.vram_budget_bytes if gpu.info is not None else None
    if budget is not None and device.kind == GpuKind.DISCRETE:
        free = min(free, budget)
    return msgspec.structs.replace(device, free_bytes=free)


class Bounds(Record, frozen=True, kw_only=True):
    """What the user wants kept free, bytes: per device (``None`` = the rule), and for others."""

    headroom_bytes: int | None = None
    reserve_bytes: int = 0


def own_memory(machine: Machine, devices: tuple[SearchDevice, ...]) -> dict[str, int | None]:
    """Return the GPUs among ``devices`` that have memory of their own → what may be used of it.

    An integrated GPU lives in shared memory: growth there is no spill. Windows lets programs use
    a little less than there is.
    """
    names = {d.id for d in devices if d.kind != GpuKind.INTEGRATED}
    own = [g for g in machine.gpus if names & {d.name for d in g.engine}]
    return {g.key: _usable_bytes(g.info) for g in own}


def _usable_bytes(info: GpuInfo | None) -> int | None:
    sizes = () if info is None else (info.vram_total_bytes, info.vram_budget_bytes)
    return min((n for n in sizes if n), default=None)


def memory_for(
    spec: ModelSpec,
    machine: Machine,
    devices: tuple[SearchDevice, ...],
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    plan: "Plan | None" = None,
    overheads: Mapping[str, Overhead] | None = None,
    readings: Readings | None = None,
    unread: Mapping[str, str] | None = None,
) -> Memory:
    """Return the memory questions of a model on this machine.

    Args:
        spec: The model.
        machine: The machine.
        devices: Where layers may go, with the free memory of now.
        bounds: What must stay free.
        plan: The engine's dry run; ``None`` = only the formula.
        overheads: What real loads taught (``calibrating.known_overheads``).
        readings: What the probes read now.
        unread: Devices whose free memory is not known → why.
    """
    gpus = named_gpus(machine)
    shown = frozenset(n for n, gpu in gpus.items() if gpu.info and gpu.info.drives_display)
    shared = {n: gpu for n, gpu in gpus.items() if is_unified(gpu)}
    now = readings or Readings({})
    return Memory(
        spec,
        devices,
        machine.host,
        plan,
        headroom_bytes=bounds.headroom_bytes,
        reserve_bytes=bounds.reserve_bytes,
        displays=shown,
        unified={name: carve_out_bytes(gpu, now) for name, gpu in shared.items()},
        unread=unread,
        calibration=overheads,
    )


def pinned(launch: Launch, machine: Machine, devices: Iterable[str]) -> Launch:
    """Return ``launch`` bound to the cards behind engine names: workers see no other card."""
    names = set(devices)
    pins = (
        Pin(name=d.name, pci_id=d.pci_id, uuid=gpu.info.uuid if gpu.info is not None else None)
        for gpu in machine.gpus
        for d in gpu.engine
        if d.name in names and d.pci_id is not None
    )
    return msgspec.structs.replace(launch, pins=tuple(pins))


def is_unified(gpu: Gpu) -> bool:
    """Return whether a GPU's memory is the system's (APU, Jetson, GB10…)."""
    return kind_of(gpu) is GpuKind.INTEGRATED or bool(gpu.info and gpu.info.unified_memory)


class Learned(NamedTuple):
    """What real loads taught, and where to put what the next one teaches."""

    stored: tuple[Calibration, ...] = ()
    keep: Callable[[Calibration], None] | None = None


def open_rig(
    spec: ModelSpec,
    machine: Machine,
    launch: Launch,
    *,
    devices: tuple[str, ...] = (),
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    telemetry: Telemetry | None = None,
    readings: Readings | None = None,
    learned: Learned = Learned(),  # noqa: B008 - immutable
) -> tuple[WorkerRig, Memory]:
    """Return a rig for ``spec`` and the memory questions it shares its dry runs with.

    Args:
        spec: The model.
        machine: The machine, engine included.
        launch: How workers are started.
        devices: Names of devices to use; empty = all that make sense.
        bounds: What must stay free.
        telemetry: Watches trials, and tells free memory while they run.
        readings: Tell free memory once, where nothing is loaded.
        learned: Calibrations.

    Raises:
        UsageProblem: A named device is not there.
    """
    free_now: FreeNow = lambda _: None  # noqa: E731 - one of three
    if telemetry:
        free_now = free_by_probe(machine, telemetry)
    usable = usable_devices(
        machine, devices, free_by_reading(machine, readings) if readings else free_now
    )

    def judge(settings: Settings, _plan: Plan) -> MemoryEstimate:
        return memory.estimate(settings, exact=True)

    rig = WorkerRig(
        spec,
        search_host(machine),
        devices=tuple(d.id for d in usable),
        launch=pinned(launch, machine, (d.id for d in usable)),
        window=telemetry.window if telemetry else None,
        free_now=free_now,
        judge=judge,
        own_memory=own_memory(machine, usable),
        learn=learner(spec, machine, learned.keep) if telemetry and learned.keep else None,
        cool_down=CoolDown(temperature_by_probe(telemetry)) if telemetry else None,
    )
    memory = memory_for(
        spec,
        machine,
        usable,
        bounds=bounds,
        plan=rig.plan,
        overheads=known_overheads(learned.stored, spec, machine),
        readings=readings,
    )
    return rig, memory


def free_by_reading(machine: Machine, readings: Readings) -> FreeNow:
    """Return what looks a device's free memory up in ``readings``."""
    keys = {d.name: gpu.key for gpu in machine.gpus for d in gpu.engine}

    def free_now(name: str) -> int | None:
        sample = readings.gpus.get(keys.get(name, name))
        return sample.vram_free_bytes if sample is not None else None

    return free_now


def placed_devices(
    machine: Machine, wanted: tuple[str, ...], readings: Readings
) -> tuple[tuple[SearchDevice, ...], dict[str, str]]:
    """Return the devices of an estimate, and why a free memory is not known.

    Where the engine was not asked (a GPU sleeps, or the machine is a recording) the probes say
    what there is.

    Raises:
        UsageProblem: A named device is not there.
    """
    if machine.engine is not None:
        free_now = free_by_reading(machine, readings)
        return usable_devices(machine, wanted, free_now), {}
    devices, unread = probed_devices(machine, readings)
    _check_known(wanted, [d.id for d in devices])
    return tuple(d for d in devices if not wanted or d.id in wanted), unread
