"""Overflow of a card's memory into RAM, as the probes saw it while a trial ran."""

from collections.abc import Mapping

import msgspec

from app.domain.memory import DeviceMemory
from app.domain.record import Record
from app.domain.settings import LoadMode, Settings
from app.domain.trial import TelemetryWindow, Trial

FULL_FRAC = 0.9
"""Share of a card's memory in use above which a rise of shared memory is an overflow.

Below it the driver had no reason to move anything out: what rises then is its own staging.
"""


class Card(Record, frozen=True, kw_only=True):
    """A device with memory of its own, as the probes know it.

    Attributes:
        key: Its key in a ``TelemetryWindow``.
        total_bytes: Dedicated memory that one program can get; ``None`` = not known.
    """

    key: str
    total_bytes: int | None = None


def with_overflow(trial: Trial, cards: Mapping[str, Card], host: DeviceMemory | None) -> Trial:
    """Return ``trial`` with the growth of shared memory that was nobody's intention.

    Args:
        trial: As the engine reported it.
        cards: Engine device → card, for devices with memory of their own.
        host: The engine's own buffers in RAM.
    """
    window = trial.telemetry
    if window is None:
        return trial
    settings = trial.effective or trial.request.settings
    used = [cards[name] for name in settings.devices if name in cards]
    grown = _overflow(window, used, _pinned(host, settings))
    return msgspec.structs.replace(trial, shared_growth_bytes=grown)


def _overflow(window: TelemetryWindow, used: list[Card], pinned: int) -> int | None:
    known = [card for card in used if card.key in window.shared_growth_bytes]
    if not known:
        return None
    grown = sum(window.shared_growth_bytes[c.key] for c in known if _is_full(window, c))
    return max(0, grown - pinned)


def _is_full(window: TelemetryWindow, card: Card) -> bool:
    peak = window.vram_peak_bytes.get(card.key)
    if peak is None or card.total_bytes is None:
        return True
    return peak >= card.total_bytes * FULL_FRAC


def _pinned(host: DeviceMemory | None, settings: Settings) -> int:
    """Return the engine's bytes in RAM that a device may reach, which drivers count as shared."""
    if host is None:
        return 0
    mapped = 0 if settings.load_mode is LoadMode.NONE else host.weights_bytes or 0
    return max(0, host.total_bytes - mapped)
