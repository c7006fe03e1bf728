"""Rules on cards that are broken or not fully connected, by what their own driver says."""

from collections.abc import Iterator

from app.advice.rule import Evidence, Rule, Situation, cards, kind, name_of
from app.domain.finding import Actor, Severity
from app.domain.machine import GpuKind


def memory_errors(now: Situation) -> Iterator[Evidence]:
    """The card could not correct errors of its memory: results may be wrong."""
    for gpu in cards(now.machine):
        count = now.reading(gpu, "memory_errors")
        if count:
            yield {"gpu": name_of(gpu), "count": int(count)}


def no_power_plug(now: Situation) -> Iterator[Evidence]:
    """The driver refuses a card whose power plug is missing."""
    yield from _refused(now, "no_power")


def damaged_card(now: Situation) -> Iterator[Evidence]:
    """The card's own store of settings (InfoROM) is damaged."""
    yield from _refused(now, "damaged")


def no_driver(now: Situation) -> Iterator[Evidence]:
    """A GPU of AMD or Intel is there without any driver; NVIDIA's has a rule of its own."""
    has_card = any(gpu.engine for gpu in cards(now.machine))
    for gpu in now.machine.gpus:
        info = gpu.info
        if info is None or gpu.engine or info.vendor == "nvidia":
            continue
        # A processor's GPU beside a card that works would not be used anyway.
        spare = has_card and kind(gpu) is GpuKind.INTEGRATED
        if info.missing.get("driver") == "driver_not_loaded" and not spare:
            yield {"gpu": name_of(gpu)}


def _refused(now: Situation, reason: str) -> Iterator[Evidence]:
    for gpu in cards(now.machine, "nvidia"):
        said = [gpu.info.missing] if gpu.info is not None else []
        said += [sample.missing for sample in now.samples.get(gpu.key, ())]
        if any(reason in missing.values() for missing in said):
            yield {"gpu": name_of(gpu)}


HEALTH_RULES = (
    Rule(
        "memory_errors",
        Severity.WARNING,
        Actor.USER,
        "nvml.h, nvmlDeviceGetTotalEccErrors",
        memory_errors,
    ),
    Rule("no_power_plug", Severity.PROBLEM, Actor.USER, "NVML code 8", no_power_plug),
    Rule("damaged_card", Severity.WARNING, Actor.USER, "NVML code 14", damaged_card),
    Rule(
        "no_driver",
        Severity.WARNING,
        Actor.USER,
        "Linux PCI bus; Windows plug and play",
        no_driver,
    ),
)
