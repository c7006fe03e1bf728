"""Opens a rig of real workers for a model: memory verdicts, telemetry and devices wired in."""

from collections.abc import Iterable, Mapping

import msgspec

from app.advice.rules import blocker
from app.advice.text import render
from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.machine import GpuKind, Machine
from app.domain.memory import MemoryEstimate
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.domain.sweep import SearchDevice, SearchHost
from app.machine import kind_of, search_devices
from app.memory import Memory, Overhead
from app.rig.pins import Pin
from app.rig.process import Launch
from app.rig.workers import FreeNow, Plan, WorkerRig
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
    raise EnvironmentProblem("not_a_text_model", message, "Choose a text model.")


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
    devices = search_devices(machine)
    named = {d.name: g for g in machine.gpus for d in g.engine}
    for name in wanted:
        if name not in named:
            known = ", ".join(named) or "none besides the CPU"
            message = f"There is no device {name!r}."
            raise UsageProblem("unknown_device", message, f"Known: {known}.")
    chosen = [d for d in devices if not wanted or d.id in wanted]
    return tuple(_with_free(d, free_now(d.id)) for d in chosen)


def _with_free(device: SearchDevice, free_bytes: int | None) -> SearchDevice:
    if free_bytes is None or device.kind == GpuKind.INTEGRATED:
        return device
    return msgspec.structs.replace(device, free_bytes=min(free_bytes, device.total_bytes))


def memory_for(
    spec: ModelSpec,
    machine: Machine,
    devices: tuple[SearchDevice, ...],
    *,
    headroom_bytes: int | None = None,
    plan: "Plan | None" = None,
    calibration: Mapping[str, Overhead] | None = None,
) -> Memory:
    """Return the memory questions of a model on this machine."""
    gpus = {d.name: g for g in machine.gpus for d in g.engine}
    shown = frozenset(
        name for name, gpu in gpus.items() if gpu.info is not None and gpu.info.drives_display
    )
    unified = frozenset(n for n, gpu in gpus.items() if kind_of(gpu) is GpuKind.INTEGRATED)
    return Memory(
        spec,
        devices,
        machine.host,
        plan,
        headroom_bytes=headroom_bytes,
        displays=shown,
        unified=unified,
        calibration=calibration,
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


def open_rig(
    spec: ModelSpec,
    machine: Machine,
    launch: Launch,
    *,
    devices: tuple[str, ...] = (),
    headroom_bytes: int | None = None,
    telemetry: Telemetry | None = None,
) -> tuple[WorkerRig, Memory]:
    """Return a rig for ``spec`` and the memory questions it shares its dry runs with.

    Raises:
        UsageProblem: A named device is not there.
    """
    free_now = free_by_probe(machine, telemetry) if telemetry else lambda _: None
    usable = usable_devices(machine, devices, free_now)

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
    )
    memory = memory_for(spec, machine, usable, headroom_bytes=headroom_bytes, plan=rig.plan)
    return rig, memory
