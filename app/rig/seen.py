"""What telemetry saw of a trial, as the trial's own outcome: spilled, throttled."""

from collections.abc import Collection, Iterable, Mapping

from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.settings import LoadMode, Settings
from app.domain.trial import TelemetryWindow
from app.domain.units import GIB, MIB

SPILL_BYTES = 64 * MIB
SPILL_TRAFFIC_BYTES_S = 2 * GIB
"""Median traffic into a device that mostly decodes: only weights or cache in RAM are so much."""
FULL_FRAC = 0.9
"""Share of a card in use from which on its memory may have overflowed."""
SLOWED_BY = frozenset({"hw_thermal", "sw_thermal", "hw_slowdown", "hw_power_brake"})
"""Reasons that pass: heat and supply. A power limit is how the card is set, and stays."""


def shared_growth(
    window: TelemetryWindow | None, gpus: Mapping[str, int | None] | None, pinned_bytes: int
) -> int | None:
    """Return the growth of shared memory that only a spill explains, bytes.

    Not what the engine itself keeps in RAM, and nothing on a card with room left: drivers stage
    copies in shared memory.

    Args:
        window: What was seen.
        gpus: GPUs whose shared memory is not their own → memory they may use, bytes (``None`` =
            not known); without them all count.
        pinned_bytes: What the engine allocated in RAM for the device, as it says itself.

    Returns:
        ``None`` where no probe reads shared memory.
    """
    if window is None:
        return None
    seen = {k: n for k, n in window.shared_growth_bytes.items() if gpus is None or k in gpus}
    spilled = [n for k, n in seen.items() if may_be_full(window, k, (gpus or {}).get(k))]
    return max(0, sum(spilled) - pinned_bytes) if seen else None


def may_be_full(window: TelemetryWindow, key: str, total_bytes: int | None) -> bool:
    """Whether a card's memory was nearly all in use, as far as that is known."""
    peak = window.vram_peak_bytes.get(key)
    return peak is None or total_bytes is None or peak >= total_bytes * FULL_FRAC


def pinned_bytes(devices: Iterable[DeviceMemory], settings: Settings, *, loaded: bool) -> int:
    """Return what the engine holds in RAM that a driver may count as shared memory.

    Args:
        devices: The engine's own account.
        settings: What ran; mapped weights are the file's, copied ones are pinned.
        loaded: Whether the weights were loaded while the window was open.
    """
    host = next((d for d in devices if d.device == "host"), None)
    if host is None:
        return 0
    weights = host.weights_bytes or 0
    is_pinned = settings.load_mode is LoadMode.NONE and loaded
    return host.total_bytes - (0 if is_pinned else weights)


def outcome_seen(
    window: TelemetryWindow | None, gpus: Collection[str] | None, growth_bytes: int | None
) -> Outcome:
    """Return how a trial that ran to its end counts: ok, spilled, or throttled."""
    if window is None:
        return Outcome.OK
    read = [n for key, n in window.pcie_rx_bytes_s.items() if gpus is None or key in gpus]
    if (growth_bytes or 0) > SPILL_BYTES and max(read, default=0.0) > SPILL_TRAFFIC_BYTES_S:
        return Outcome.SPILLED
    reasons = {r for key, names in window.throttle.items() if _counts(key, gpus) for r in names}
    return Outcome.THROTTLED if reasons & SLOWED_BY else Outcome.OK


def _counts(key: str, gpus: Collection[str] | None) -> bool:
    return gpus is None or key in gpus
