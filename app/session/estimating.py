"""What a configuration needs here, and the inverse questions around it."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from app.advice.text import render
from app.domain.machine import Machine
from app.domain.memory import MemoryEstimate, Verdict
from app.domain.model import ModelSpec
from app.domain.overrides import check_overrides
from app.domain.settings import FlashAttn, Settings
from app.memory import Memory
from app.rig.process import Launch
from app.session.calibrating import known_overheads, outdated_words, overhead_words
from app.session.opening import (
    Bounds,
    Learned,
    memory_for,
    open_rig,
    placed_devices,
    search_host,
)
from app.session.readings import Holder, Readings, holders, named_gpus, sleepers
from app.session.views import Estimate, IfClosed, Remedy

_PROGRAMS = 3
# llama.cpp's own physical batch; a saving below this share of the need is not worth a word
_USUAL_UBATCH = 512
_WORTH_SAYING = 0.005
_NO_BOUNDS = Bounds()


class Scene(NamedTuple):
    """What an estimate is made in: machine, readings of now, calibrations, and the engine."""

    machine: Machine
    readings: Readings
    learned: Learned
    launch: Launch


def estimate(
    scene: Scene, spec: ModelSpec, settings: Settings, bounds: Bounds, *, exact: bool
) -> Estimate:
    """Return what ``settings`` need and the most that would fit; a sleeping GPU sleeps on."""
    machine, readings = scene.machine, scene.readings
    _check_buffers(scene, settings)
    asleep = sleepers(machine, readings)
    rig = None
    if exact and machine.engine is not None and not asleep:
        rig, memory = open_rig(
            spec, machine, scene.launch, devices=settings.devices, bounds=bounds,
            readings=readings, learned=scene.learned,
        )  # fmt: skip
    else:
        memory = formula(scene, spec, settings.devices, bounds)
    held = holders(machine, readings, tuple(named_gpus(machine)))
    try:
        found = answer(memory, settings, held, exact=rig is not None)
        found = with_note(found, outdated_words(scene.learned.stored, machine))
        found = with_note(found, _split_note(settings))
        return with_note(found, sleep_note(asleep, exact=exact))
    finally:
        if rig is not None:
            rig.close()


def _check_buffers(scene: Scene, settings: Settings) -> None:
    """Refuse rules that put tensors on a device that is not used."""
    if settings.override_tensor:
        devices, _ = placed_devices(scene.machine, settings.devices, scene.readings)
        is_used = settings.n_gpu_layers > 0 or settings.devices
        check_overrides(settings.override_tensor, tuple(d.id for d in devices if is_used))


def formula(
    scene: Scene, spec: ModelSpec, wanted: tuple[str, ...] = (), bounds: Bounds = _NO_BOUNDS
) -> Memory:
    """Return the memory questions of ``spec`` here, without the engine's dry run."""
    devices, unread = placed_devices(scene.machine, wanted, scene.readings)
    return memory_for(
        spec,
        scene.machine,
        devices,
        bounds=bounds,
        overheads=known_overheads(scene.learned.stored, spec, scene.machine),
        readings=scene.readings,
        unread=unread,
    )


def default_settings(scene: Scene, spec: ModelSpec, n_ctx: int) -> Settings:
    """Return sensible settings for an untuned model: the devices with room, every layer there."""
    base = Settings(
        n_gpu_layers=0,
        n_ctx=n_ctx,
        n_threads=search_host(scene.machine).cores_physical,
        flash_attn=FlashAttn.AUTO,
    )
    memory = formula(scene, spec)
    if memory.is_unread(base):
        # what would be wanted; whether it fits is said as unknown
        return _with_layers(base, spec.max_gpu_layers)
    return with_most_layers(memory, base)


def with_most_layers(memory: Memory, base: Settings) -> Settings:
    """Return ``base`` with the most layers that fit, without the devices that are in their way.

    llama.cpp gives every device its share, so one that is full leaves none to the others. The
    fullest are left out, one more at a time, where that makes room for more layers.
    """
    best = _with_layers(base, memory.max_n_gpu_layers(base) or 0)
    every = _with_layers(base, memory.spec.max_gpu_layers)
    used = [d for d in memory.estimate(every).devices if d.device != "host"]
    by_free = sorted(used, key=lambda d: d.free_bytes or 0)
    for n_out in range(1, len(used)):
        if best.n_gpu_layers == memory.spec.max_gpu_layers:
            break
        devices = tuple(d.device for d in used if d not in by_free[:n_out])
        fewer = msgspec.structs.replace(base, devices=devices)
        layers = memory.max_n_gpu_layers(fewer) or 0
        if layers > best.n_gpu_layers:
            best = _with_layers(fewer, layers)
    return best


def answer(
    memory: Memory, settings: Settings, held: Iterable[Holder] = (), *, exact: bool = False
) -> Estimate:
    """Return the estimate of ``settings`` and the most that would fit around it.

    Args:
        memory: The model on this machine.
        settings: The configuration.
        held: Programs that hold memory of its devices, the largest first.
        exact: Ask the engine's dry run.
    """
    estimate = memory.estimate(settings, exact=exact)
    most = memory.max_n_gpu_layers(settings, exact=exact)
    base = settings if most is None else _with_layers(settings, min(most, settings.n_gpu_layers))
    used = {d.device for d in estimate.devices}
    found = Estimate(
        settings=settings,
        estimate=estimate,
        max_n_gpu_layers=most,
        max_n_ctx=memory.max_n_ctx(settings, exact=exact),
        min_n_cpu_moe=memory.min_n_cpu_moe(settings, exact=exact),
        cheapest_kv=memory.cheapest_kv(settings, exact=exact),
        next_layer_bytes=memory.next_layer_bytes(base, exact=exact),
        remedies=_remedies(memory, settings, estimate, exact=exact),
        overhead_source=overhead_words(estimate.devices),
        if_closed=tuple(
            _if_closed(memory, settings, holder, exact=exact)
            for holder in [h for h in held if h.device in used][:_PROGRAMS]
        ),
    )
    return with_note(found, _full_note(memory, found, exact=exact) if most == 0 else "")


def _full_note(memory: Memory, found: Estimate, *, exact: bool) -> str:
    """Return which devices forbid every layer on the others, as a search would leave them out."""
    names = [d.device for d in found.estimate.devices if d.device != "host"]
    if found.settings.tensor_split:
        return ""  # the shares are for exactly these devices

    def most(devices: tuple[str, ...]) -> int:
        alone = msgspec.structs.replace(found.settings, devices=devices)
        return memory.max_n_gpu_layers(alone, exact=exact) or 0

    free = tuple(name for name in names if most((name,)))
    full = ", ".join(name for name in names if name not in free)
    layers = most(free) if free and full else 0
    if not layers:
        return ""
    alone = ", ".join(free)
    return f"No room for a layer on {full}. GPU layers that fit on {alone} alone: {layers}."


def _remedies(
    memory: Memory, settings: Settings, estimate: MemoryEstimate, *, exact: bool
) -> tuple[Remedy, ...]:
    """Return what would need less: where it does not fit, and plain attention where it is dear."""
    changes: list[tuple[str, object]] = []
    if settings.flash_attn is FlashAttn.OFF:
        changes.append(("flash_attn", FlashAttn.ON))
    if estimate.verdict is not Verdict.FITS:
        changes += [
            (name, least)
            for name, least in (("n_ubatch", _USUAL_UBATCH), ("n_seq_max", 1))
            if getattr(settings, name) > least
        ]
    need, found = _total_bytes(estimate), []
    for name, value in changes if need else ():
        changed = msgspec.structs.replace(settings, **{name: value})
        then = memory.estimate(changed, exact=exact)
        saved = need - _total_bytes(then)
        # a refusal has no devices, and says nothing of what would be needed
        if then.devices and saved >= need * _WORTH_SAYING:
            found.append(
                Remedy(
                    knob=name,
                    value=str(value),
                    saved_bytes=saved,
                    verdict=then.verdict,
                    max_n_gpu_layers=memory.max_n_gpu_layers(changed, exact=exact),
                )
            )
    return tuple(sorted(found, key=lambda r: -r.saved_bytes))


def _total_bytes(estimate: MemoryEstimate) -> int:
    return sum(device.total_bytes for device in estimate.devices)


def with_note(found: Estimate, note: str) -> Estimate:
    """Return ``found`` with a sentence before its own."""
    if not note:
        return found
    text = f"{note} {found.estimate.note}" if found.estimate.note else note
    return msgspec.structs.replace(
        found, estimate=msgspec.structs.replace(found.estimate, note=text)
    )


def _split_note(settings: Settings) -> str:
    """Return the limits of a way to share layers that is only there on request."""
    return render("note", f"split_{settings.split_mode}", {}) if settings.is_divided else ""


def sleep_note(asleep: tuple[str, ...], *, exact: bool) -> str:
    """Return what a sleeping GPU means for the answer; empty when none sleeps."""
    if not asleep:
        return ""
    names = " and ".join(asleep)
    text = f"{names} sleeps and stays asleep: the figures are the formula's"
    if exact:
        text += ", not the dry run's, which would wake it"
    return f"{text}. What runs a model (bench, tune, chat) wakes it."


def _if_closed(memory: Memory, settings: Settings, holder: Holder, *, exact: bool) -> IfClosed:
    freed = memory.freed({holder.device: holder.n_bytes})
    return IfClosed(
        device=holder.device,
        pid=holder.process.pid,
        name=holder.process.name,
        vram_bytes=holder.n_bytes,
        verdict=freed.estimate(settings, exact=exact).verdict,
        max_n_gpu_layers=freed.max_n_gpu_layers(settings, exact=exact),
        max_n_ctx=freed.max_n_ctx(settings, exact=exact),
    )


def _with_layers(settings: Settings, n_gpu_layers: int) -> Settings:
    return msgspec.structs.replace(settings, n_gpu_layers=n_gpu_layers)
