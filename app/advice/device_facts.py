"""What there is to know about devices without anything being wrong: choices, displays, limits."""

from collections.abc import Iterator

from app.advice.rule import Evidence, cards, integrated, name_of, seconds
from app.domain.machine import EngineDevice, GpuKind, Machine, WindowsSettings
from app.domain.record import Record


class DeviceFact(Record, frozen=True, kw_only=True):
    """A fact as a code of the texts' section ``device``.

    Attributes:
        id: Unique on one machine.
        code: Key of its sentence.
        data: Placeholders of the sentence and of its hint.
        hint: Key of what can be done, if anything.
    """

    id: str
    code: str
    data: Evidence = {}
    hint: str | None = None


def device_facts(machine: Machine) -> Iterator[DeviceFact]:
    """Yield what each backend would take, who draws the desktop, and the drivers' time limits."""
    yield from _choices(machine)
    yield from _hybrid(machine)
    if machine.host.windows is not None:
        yield from _windows_limits(machine.host.windows)
    yield from _kernel_limits(machine)


def would_take(devices: tuple[EngineDevice, ...], backend: str) -> EngineDevice | None:
    """Return the device llama.cpp itself would begin with on a backend.

    It leaves processors' GPUs out where the backend has a card, and takes cards in the
    backend's own order.
    """
    own = [d for d in devices if d.backend == backend and d.kind is not GpuKind.SOFTWARE]
    discrete = [d for d in own if d.kind is GpuKind.DISCRETE]
    return next(iter(discrete or own), None)


def _choices(machine: Machine) -> Iterator[DeviceFact]:
    devices = machine.engine.devices if machine.engine is not None else ()
    for backend in dict.fromkeys(d.backend for d in devices):
        device = would_take(devices, backend)
        if device is not None:
            data: Evidence = {
                "backend": backend, "device": device.name, "description": device.description,
            }  # fmt: skip
            yield DeviceFact(id=f"choice_{backend}", code="choice", data=data)


def _hybrid(machine: Machine) -> Iterator[DeviceFact]:
    card, other = next(cards(machine), None), next(integrated(machine), None)
    host = machine.host
    if card is None or other is None:
        return
    shown = [gpu for gpu in (card, other) if gpu.info is not None and gpu.info.drives_display]
    data: Evidence = {
        "shown": ", ".join(name_of(gpu) for gpu in shown) or None,
        "mode": host.gpu_mode,
        "system": host.os,
    }
    on_card = card in shown and other not in shown
    code = f"hybrid_on_{host.power_source.value}"
    yield DeviceFact(id="hybrid", code=code, data=data, hint="switch" if on_card else None)


def _windows_limits(settings: WindowsSettings) -> Iterator[DeviceFact]:
    data: Evidence = {t.name: t.effective for t in settings.timeouts}
    found = [t.name for t in settings.timeouts if t.source == "registry"]
    found += ["TccTimeout"] if settings.tcc_timeout else []
    data["found"] = ", ".join(found) or None
    data["resets"] = None if settings.resets is None else len(settings.resets)
    # A recording may lack a value that this version reads.
    names = ("TdrLevel", "TdrDelay", "TdrDdiDelay", "TdrLimitTime", "TdrLimitCount", "TdrDebugMode")
    known = {**dict.fromkeys(names), **data}
    code = "limits_windows_none" if known["TdrLevel"] == 0 else "limits_windows_on"
    yield DeviceFact(id="timeouts", code=code, data=known, hint="limits_read_only")


def _kernel_limits(machine: Machine) -> Iterator[DeviceFact]:
    for gpu in machine.gpus:
        info = gpu.info
        if info is None or info.compute_timeout_source not in {"default", "set", "driver"}:
            continue
        limit = info.compute_timeout_ms
        code = f"limit_{info.compute_timeout_source}" if limit is not None else "limit_none"
        data: Evidence = {
            "gpu": name_of(gpu), "limit_s": None if limit is None else seconds(limit),
        }  # fmt: skip
        yield DeviceFact(id=f"timeout_{gpu.key}", code=code, data=data, hint="limit_shorter_work")
