"""The temperatures to keep to: relative to where the device's own firmware steps in."""

from app.domain.machine import PowerSource
from app.power.records import GovernedDevice, Mode, Reading, Wish
from app.power.sensing import usable

ASSUMED_SLOWDOWN_C = 83.0
ASSUMED_MEMORY_SLOWDOWN_C = 105.0
MARGINS_C = {Mode.QUIET: 22.0, Mode.BALANCED: 9.0, Mode.FULL: 4.0}
"""Distance of the target from the slowdown temperature (facts: thresholds at −9 and −22 °C)."""

TARGET_MIN_C = 45.0
MARGIN_MIN_C = 3.0
QUIET_PROFILES = {"saver", "quiet", "low-power", "power-saver"}
"""The probes' word first; the others are what systems call it."""


def targets(device: GovernedDevice, wish: Wish, reading: Reading) -> tuple[float, float]:
    """Return the target temperature of core and memory, °C."""
    slowdown = usable(device.slowdown_c) or ASSUMED_SLOWDOWN_C
    memory = usable(device.memory_slowdown_c) or ASSUMED_MEMORY_SLOWDOWN_C
    margin = MARGINS_C[effective_mode(wish.mode, reading)]
    if wish.target_c is not None:
        margin = slowdown - max(TARGET_MIN_C, wish.target_c)
    margin = max(MARGIN_MIN_C, margin)
    return slowdown - margin, memory - margin


def effective_mode(mode: Mode, reading: Reading) -> Mode:
    """Return the mode after what battery and the system's power profile ask for."""
    if reading.source is PowerSource.BATTERY:
        return Mode.BALANCED if mode is Mode.FULL else Mode.QUIET
    if reading.profile in QUIET_PROFILES and mode is Mode.BALANCED:
        return Mode.QUIET
    return mode


def paces(wish: Wish, reading: Reading) -> bool:
    """Whether a temperature is to be kept, and by pauses if need be: not in full mode.

    The firmware's own slowdown costs a decode less speed than pauses that cool as much: pacing is
    for people who want it cooler or steady, not for those who want it fast.
    """
    return wish.target_c is not None or effective_mode(wish.mode, reading) is not Mode.FULL
