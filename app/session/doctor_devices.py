"""Which card is which: roles, what each backend would take, and the drivers' time limits."""

from collections.abc import Iterator

from app.advice.rule import cards, integrated, name_of
from app.domain.finding import Check, CheckStatus
from app.domain.machine import EngineDevice, Gpu, GpuKind, Machine, WindowsSettings
from app.domain.units import format_bytes
from app.machine import kind_of

SWITCH = {
    "windows": "Settings > System > Display > Graphics sets programs to a GPU (DirectX only); "
    "the maker's tool or the firmware setup switches a MUX.",
    "linux": "prime-select, envycontrol -s or supergfxctl -m switches modes; restart afterwards.",
}
"""The setting to change, per operating system."""
READ_ONLY = (
    "RigTune only reads them. Microsoft documents them for testing drivers: neither programs nor "
    "users should change them. A smaller n_ubatch keeps work short instead."
)
SOURCES = {
    "default": "the kernel's default",
    "set": "module parameter lockup_timeout",
    "driver": "the driver's own file",
}
"""Where a kernel's time limit comes from."""


def device_checks(machine: Machine) -> Iterator[Check]:
    """Yield what there is to say about devices; nothing on a machine without a GPU."""
    for gpu in machine.gpus:
        yield Check(id=f"gpu_{gpu.key}", status=CheckStatus.OK, text=_role(gpu))
    yield from _choices(machine)
    yield from _hybrid(machine)
    yield from _time_limits(machine)


def would_take(devices: tuple[EngineDevice, ...], backend: str) -> EngineDevice | None:
    """Return the device llama.cpp itself would begin with on a backend.

    It leaves processors' GPUs out where the backend has a card, and takes cards in the
    backend's own order.
    """
    own = [d for d in devices if d.backend == backend and d.kind is not GpuKind.SOFTWARE]
    discrete = [d for d in own if d.kind is GpuKind.DISCRETE]
    return next(iter(discrete or own), None)


def _role(gpu: Gpu) -> str:
    info = gpu.info
    words = [kind_of(gpu).value]
    if info is not None:
        words += ["drives a display"] if info.drives_display else []
        words += ["may sleep when idle"] if info.may_sleep else []
        words += ["external"] if info.external else []
        words += [f"{format_bytes(info.vram_total_bytes)}"] if info.vram_total_bytes else []
        words += ["asleep"] if "asleep" in info.missing.values() else []
    names = ", ".join(d.name for d in gpu.engine) or "not used by the engine"
    return f"{name_of(gpu)}: {', '.join(words)}; engine names: {names}"


def _choices(machine: Machine) -> Iterator[Check]:
    engine = machine.engine
    for backend in dict.fromkeys(d.backend for d in engine.devices) if engine is not None else ():
        device = would_take(engine.devices if engine is not None else (), backend)
        if device is not None:
            text = f"{backend} on its own would take {device.name} ({device.description})"
            yield Check(id=f"choice_{backend}", status=CheckStatus.OK, text=text)


def _hybrid(machine: Machine) -> Iterator[Check]:
    card, other = next(cards(machine), None), next(integrated(machine), None)
    host = machine.host
    if card is None or other is None:
        return
    both = [gpu for gpu in (card, other) if gpu.info is not None and gpu.info.drives_display]
    shown = ", ".join(name_of(gpu) for gpu in both) or "unknown"
    words = [f"the desktop is drawn by {shown}", f"power: {host.power_source.value}"]
    words += [f"graphics mode: {host.gpu_mode}"] if host.gpu_mode is not None else []
    on_card = card in both and other not in both
    yield Check(
        id="hybrid",
        status=CheckStatus.OK,
        text=f"Hybrid machine: {'; '.join(words)}",
        hint=SWITCH.get(host.os, "") if on_card else "",
    )


def _time_limits(machine: Machine) -> Iterator[Check]:
    if machine.host.windows is not None:
        text = _windows_limits(machine.host.windows)
        yield Check(id="timeouts", status=CheckStatus.OK, text=text, hint=READ_ONLY)
    for gpu in machine.gpus:
        info = gpu.info
        if info is None or info.compute_timeout_source is None:
            continue
        source = SOURCES.get(info.compute_timeout_source, info.compute_timeout_source)
        if info.compute_timeout_ms is None:
            text = f"The kernel lets work on {name_of(gpu)} run without a time limit ({source})"
        else:
            seconds = f"{info.compute_timeout_ms / 1000:g} s"
            text = f"The kernel resets {name_of(gpu)} when one job takes {seconds} ({source})"
        yield Check(id=f"timeout_{gpu.key}", status=CheckStatus.OK, text=text)


def _windows_limits(settings: WindowsSettings) -> str:
    values = [
        f"{t.name} {t.effective}{' ' + t.unit if t.unit else ''}"
        + (" (default)" if t.source != "registry" else " (set)")
        for t in settings.timeouts
    ]
    values += ["TccTimeout (unknown to Windows, no effect)"] if settings.tcc_timeout else []
    resets = "not readable" if settings.resets is None else str(len(settings.resets))
    return f"Windows driver timeouts: {', '.join(values)}; resets in the event log: {resets}"
