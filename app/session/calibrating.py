"""What real loads taught of a device, between the store and the estimates."""

from collections.abc import Callable, Iterable

import msgspec

from app.domain.machine import Gpu, GpuKind, Machine
from app.domain.memory import DeviceMemory
from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings
from app.machine import kind_of
from app.memory import DRIVER_CONTEXT, GROWTH, Overhead, calibration_slot, depth_bucket
from app.rig.footprint import Footprint
from app.session.readings import named_gpus
from app.store import Calibration, CalibrationKey

Learn = Callable[[Calibration], None]


def known_overheads(
    stored: Iterable[Calibration], spec: ModelSpec, machine: Machine
) -> dict[str, Overhead]:
    """Return what is known of this machine's devices, by ``calibration_slot`` and by device.

    Another driver, or another backend of the same card, is not known by this one. The driver's
    context counts for every model, growth for its family only.
    """
    found: dict[str, Overhead] = {}
    rows = list(stored)
    for name, gpu in named_gpus(machine).items():
        device, driver, backend = _identity(name, gpu)
        for row in rows:
            # while the engine is not asked, any backend's figure is better than a table's
            if (row.key.device, row.key.driver) != (device, driver) or (
                backend and row.key.backend != backend
            ):
                continue
            _keep(found, name, row, 0)
            if row.key.family == spec.arch:
                _keep(found, _slot(name, row.key), row, row.growth_bytes)
    return found


def overhead_words(devices: Iterable[DeviceMemory]) -> str:
    """Return where the memory that llama.cpp does not count comes from; empty without GPUs."""
    gpus = [d for d in devices if d.driver_context_bytes]
    if not gpus:
        return ""
    measured = set.intersection(*(set(d.measured_parts) for d in gpus))
    drivers = " and ".join(dict.fromkeys(d.measured_driver for d in gpus if d.measured_driver))
    if not measured or not drivers:
        return "Driver and growth: from a table until a real load shows them."
    if GROWTH not in measured:
        return f"Driver: measured on this machine with {drivers}; growth: from a table."
    return f"Driver and growth: measured on this machine with {drivers}."


def outdated_words(stored: Iterable[Calibration], machine: Machine) -> str:
    """Return what was measured with another driver than the present one; empty when nothing."""
    rows, said = list(stored), []
    for name, gpu in named_gpus(machine).items():
        device, now, _ = _identity(name, gpu)
        drivers = {row.key.driver for row in rows if row.key.device == device}
        if drivers and now and now not in drivers:
            said.append(
                f"What {name}'s driver takes was measured with {max(drivers)}, and now it is "
                f"{now}: that figure no longer counts, the next load measures it again."
            )
    return " ".join(said)


def learner(
    spec: ModelSpec, machine: Machine, keep: Callable[[Calibration], None]
) -> Callable[[Footprint], None]:
    """Return what turns a load's footprint into a calibration and hands it to ``keep``."""
    gpus = named_gpus(machine)

    def learn(seen: Footprint) -> None:
        gpu = gpus.get(seen.device)
        if gpu is None or kind_of(gpu) is not GpuKind.DISCRETE:
            return  # free memory of a shared pool says nothing of one program
        device, driver, backend = _identity(seen.device, gpu)
        key = CalibrationKey(
            device=device,
            driver=driver,
            backend=backend,
            flash_attn=seen.settings.flash_attn is not FlashAttn.OFF,
            n_ubatch=seen.settings.n_ubatch,
            cpu_layers=seen.has_cpu_layers,
            depth_bucket=depth_bucket(seen.depth),
            family=spec.arch,
        )
        keep(
            Calibration(
                key=key,
                driver_context_bytes=seen.driver_context_bytes,
                growth_bytes=seen.growth_bytes,
            )
        )

    return learn


def _identity(name: str, gpu: Gpu) -> tuple[str, str, str]:
    """Return what a calibration belongs to: card, driver, backend (empty = not known)."""
    backend = next((d.backend for d in gpu.engine if d.name == name), "")
    return gpu.key, (gpu.info.driver if gpu.info else None) or "", backend


def _slot(name: str, key: CalibrationKey) -> str:
    settings = Settings(
        n_gpu_layers=0,
        n_ctx=key.depth_bucket,
        n_ubatch=key.n_ubatch,
        flash_attn=FlashAttn.ON if key.flash_attn else FlashAttn.OFF,
    )
    return calibration_slot(name, settings, has_cpu_layers=key.cpu_layers)


def _keep(found: dict[str, Overhead], slot: str, row: Calibration, growth: int) -> None:
    """Keep the largest sizes: with flash attention several depths share a slot."""
    old = found.get(slot, Overhead(driver_context_bytes=0, growth_bytes=0))
    found[slot] = msgspec.structs.replace(
        old,
        driver_context_bytes=max(old.driver_context_bytes, row.driver_context_bytes),
        growth_bytes=max(old.growth_bytes, growth),
        measured=(DRIVER_CONTEXT, GROWTH),
        driver=row.key.driver,
    )
