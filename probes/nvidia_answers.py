"""NVML's answers in our words: structures, bit masks, numbers with a meaning."""

from collections.abc import Callable
from typing import Any

from app.domain.machine import MAX_MEMORY_BYTES
from probes.reading import Absence

MEMORY_V2 = 0x02000028
"""``nvmlMemory_v2``: total, reserved, free, used; v1 counts the reserve as used."""
THROTTLE_NAMES: dict[int, str] = {
    0x002: "app_clocks",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal",
    0x040: "hw_thermal",
    0x080: "hw_power_brake",
    0x100: "display_clocks",
    0x200: "board_limit",
    0x400: "reliability",
}
"""Bits of the clock event reasons (``nvml.h``); bit 0, idle, is not throttling."""
ALL_BITS = 0xFFFF_FFFF
"""A mask that says everything says nothing."""
ADAPTERS = {0: "ac", 1: "battery", 2: "undersized"}
"""``NVML_POWER_SOURCE_*``."""
DRIVER_MODELS = {0: "wddm", 1: "tcc", 2: "mcdm"}
ADDRESSABLE_FRAC = 0.95
"""The window is a power of two, the memory less a driver's reserve."""
POWER_MIZER = {0: "adaptive", 1: "maximum", 2: "auto", 3: "consistent"}
"""``NVML_POWER_MIZER_MODE_*``: how eagerly the driver lowers clocks."""
GENERATIONS = {2_500: 1, 5_000: 2, 8_000: 3, 16_000: 4, 32_000: 5, 64_000: 6}
"""Speed of one lane, Mb/s → PCIe generation."""
MOBILE_WORDS = ("laptop", "mobile", "max-q", "notebook")
FORGET = {Absence.NOT_SUPPORTED, Absence.SYMBOL_MISSING}


def memory_of(ask: Callable[..., Any]) -> Any:
    """Return the memory answer, version 2 where the driver has it."""
    return first(ask("nvmlDeviceGetMemoryInfo", MEMORY_V2), lambda: ask("nvmlDeviceGetMemoryInfo"))


def first(answer: Any, other: Callable[[], Any]) -> Any:
    """Return ``answer``, or what ``other`` gives where the driver lacks the newer call."""
    return other() if isinstance(answer, Absence) and answer in FORGET else answer


def part(answer: object, name: str) -> object:
    """Return one member of a structure."""
    if isinstance(answer, dict):
        return answer.get(name, Absence.NO_DATA)
    return absence_of(answer)


MAX_CUDA = 100_000
MAX_CAPABILITY = 100
MAX_BUS_BITS, MAX_CLOCK_MHZ = 1 << 16, 40_000


def throttle_names(mask: object) -> object:
    """Return the reasons in a bit mask; empty when only idle."""
    if isinstance(mask, bool) or not isinstance(mask, int):
        return absence_of(mask)
    if not 0 <= mask < ALL_BITS:
        return Absence.IMPLAUSIBLE
    return tuple(name for bit, name in THROTTLE_NAMES.items() if mask & bit)


def cuda_version(number: object) -> object:
    """Return 12040 as ``12.4``."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1000 <= number < MAX_CUDA:
        return absence_of(number)
    return f"{number // 1000}.{number % 1000 // 10}"


def capability(answer: object) -> object:
    """Return ``[8, 9]`` as ``8.9``."""
    if not isinstance(answer, list) or len(answer) != 2:
        return absence_of(answer)
    known = all(isinstance(n, int) and 0 <= n < MAX_CAPABILITY for n in answer)
    return f"{answer[0]}.{answer[1]}" if known else Absence.IMPLAUSIBLE


def driver_model(answer: object) -> object:
    """Return the name of the current Windows driver model."""
    current = answer[0] if isinstance(answer, list) and answer else answer
    known = DRIVER_MODELS.get(current) if isinstance(current, int) else None
    return known or absence_of(current)


def adapter(answer: object) -> object:
    """Return what feeds a card."""
    known = ADAPTERS.get(answer) if isinstance(answer, int) else None
    return known or absence_of(answer)


def power_mizer(answer: object) -> object:
    """Return the name of the driver's power management mode."""
    current = part(answer, "currentMode")
    known = POWER_MIZER.get(current) if isinstance(current, int) else None
    return known or absence_of(current)


def generation_of(speed: object) -> object:
    """Return the PCIe generation of a link speed; another speed is none we know."""
    known = GENERATIONS.get(speed) if isinstance(speed, int) else None
    return known or absence_of(speed)


def is_on(answer: object) -> object:
    """Return whether a mode is on, from ``[current, pending]`` or a number."""
    current = answer[0] if isinstance(answer, list) and answer else answer
    if not isinstance(current, int):
        return absence_of(current)
    return current == 1 if current in {0, 1} else Absence.IMPLAUSIBLE


def all_addressable(bar: object, total: object) -> object:
    """Return whether the processor can address all of the card's memory (Resizable BAR)."""
    if not isinstance(bar, int) or not isinstance(total, int):
        return absence_of(bar if isinstance(bar, Absence) else total)
    if not all(0 < n_bytes <= MAX_MEMORY_BYTES for n_bytes in (bar, total)):
        return Absence.IMPLAUSIBLE
    return bar >= total * ADDRESSABLE_FRAC


def bandwidth(bus_bits: object, clock_mhz: object) -> object:
    """Return what memory moves at most, 10⁹ bytes per second.

    NVML's memory clock is half of the rate per line with every kind of memory so far: 384 bits at
    10,501 MHz are the 1,008 GB/s of an RTX 4090, 5,120 at 2,619 the 3,352 of an H100.
    """
    if not isinstance(bus_bits, int) or not isinstance(clock_mhz, int):
        return absence_of(clock_mhz if isinstance(bus_bits, int) else bus_bits)
    if not 0 < bus_bits < MAX_BUS_BITS or not 0 < clock_mhz < MAX_CLOCK_MHZ:
        return Absence.IMPLAUSIBLE
    return 2 * clock_mhz * bus_bits / 8 / 1000


def is_mobile(name: str) -> bool:
    """Return whether a card's name is that of a laptop part."""
    return any(word in name.lower() for word in MOBILE_WORDS)


def text_of(answer: object) -> str:
    """Return the text of an answer, or an empty one."""
    return "" if isinstance(answer, Absence) or not isinstance(answer, str) else answer


def absence_of(answer: object) -> Absence:
    """Return why an answer of the wrong shape is no reading."""
    return answer if isinstance(answer, Absence) else Absence.NO_DATA
