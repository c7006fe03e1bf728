"""Which cards a worker may use, by identity: names and orders change, cards do not."""

from collections.abc import Sequence

from app.domain.errors import ErrorInfo
from app.domain.machine import EngineInfo
from app.domain.outcome import Outcome
from app.domain.record import Record
from app.worker.protocol import Failed

NO_CARD = "-1"
"""Hides every card from CUDA (an empty value would unset the variable on Windows)."""


class Pin(Record, frozen=True, kw_only=True):
    """One device by what stays the same when cards come, go or change places.

    Attributes:
        name: The engine's name for it when the machine was looked at, e.g. ``CUDA1``.
        pci_id: Where it sits.
        uuid: The vendor's identity, where one is known.
    """

    name: str
    pci_id: str
    uuid: str | None = None


def arguments(pins: Sequence[Pin]) -> list[str]:
    """Return what tells a worker which card each name stands for."""
    return [part for pin in pins for part in ("--pin", f"{pin.name}={pin.pci_id}")]


def visible_to_cuda(pins: Sequence[Pin]) -> str | None:
    """Return ``CUDA_VISIBLE_DEVICES`` for the pinned cards; ``None`` where it cannot be said.

    CUDA opens a context of hundreds of MiB on every card it sees, and wakes it: it gets to see
    only what is used. Other backends need none of it, except that AMD's obeys the same variable:
    where it is used, nothing is said.
    """
    if any(pin.name.startswith(("ROCm", "HIP")) for pin in pins):
        return None
    cards = [pin.uuid for pin in pins if pin.name.startswith("CUDA")]
    known = [uuid for uuid in cards if uuid is not None]
    if len(known) < len(cards):
        return None
    return ",".join(known) or NO_CARD


def missing_card(pins: Sequence[Pin], engine: EngineInfo) -> Failed | None:
    """Return why a worker is of no use: a pinned card is not among its devices."""
    names = {device.name for device in engine.devices}
    gone = [f"{pin.name} ({pin.pci_id})" for pin in pins if pin.name not in names]
    if not gone:
        return None
    error = ErrorInfo(
        code="device_gone",
        message=f"The engine no longer finds {', '.join(gone)}.",
        hint="Was it unplugged, or did its driver change? Look at the machine again.",
    )
    return Failed(outcome=Outcome.DEVICE_LOST, error=error)
