"""NDJSON between RigTune and the power helper, and the rule of what may be set.

The helper runs with an administrator's rights, so the protocol can say little: one GPU by its PCI
address, one limit within what both sides compute from the device's own figures, and "put it
back". One JSON object a line, at most ``MAX_LINE_BYTES``; unknown fields and types are refused.
"""

import math
import re
from typing import TypeVar

import msgspec

from app.domain.record import Record

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 4096
LEASE_MIN_S, LEASE_MAX_S = 3.0, 60.0
SET_INTERVAL_S = 5.0
"""Shortest time between two changes, whoever asks."""

FLOOR_FRAC = 0.5
FLOOR_MIN_W = 1.0
"""Our own floor, half the default: drivers report 0 W, and 0 would switch the limit off."""

TOLERANCE_W = 1.0
"""Drivers round to units of up to 1 W (Intel: 1/8 W)."""

CLOCK_FLOOR_FRAC = 0.3
PCI_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z", re.ASCII)

T = TypeVar("T")


class Range(Record, frozen=True, kw_only=True):
    """What may be set, W or MHz: ``low`` ≤ value ≤ ``high``; ``now`` is what was found."""

    low: float
    high: float
    now: float
    default: float | None = None


class Facts(Record, frozen=True, kw_only=True):
    """What the helper read of the device; where there is no range, the code of the reason."""

    pci_id: str
    vendor: str
    power: Range | None = None
    power_why: str | None = None
    clocks: Range | None = None
    clocks_why: str | None = None


class PutBack(Record, frozen=True, kw_only=True):
    """How restoring one knob went.

    Attributes:
        pci_id: Device.
        knob: ``power_limit`` or ``clocks``.
        result: ``restored``, ``unchanged`` (it was as found), ``left`` (somebody else changed it
            since), ``outdated`` (the machine was restarted since) or ``failed``.
        value: What it stands at now.
    """

    pci_id: str
    knob: str
    result: str
    value: float | None = None


class Message(Record, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """Base of every line."""


# --- RigTune to helper -------------------------------------------------------------------


class Open(Message, frozen=True, kw_only=True, tag="open"):
    """Bind the helper to one device for its whole life, with a lease.

    Attributes:
        pci_id: ``domain:bus:device.function``, lower case.
        lease_s: Without a line for this long, everything is put back and the helper ends.
        v: Protocol version of the sender.
    """

    pci_id: str
    lease_s: float = 10.0
    v: int = PROTOCOL_VERSION


class SetPower(Message, frozen=True, kw_only=True, tag="set_power"):
    """Set the power limit within the range of ``Facts``."""

    watts: float


class SetClocks(Message, frozen=True, kw_only=True, tag="set_clocks"):
    """Lock the core clock to at most ``high_mhz``."""

    high_mhz: float


class KeepAlive(Message, frozen=True, kw_only=True, tag="keep_alive"):
    """Renew the lease."""


class Restore(Message, frozen=True, kw_only=True, tag="restore"):
    """Put one knob back (``power_limit`` or ``clocks``), or all of them, and go on."""

    knob: str | None = None


class Quit(Message, frozen=True, kw_only=True, tag="quit"):
    """Put everything back and end."""


# --- helper to RigTune -------------------------------------------------------------------


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    """First line: version, and what a run that was cut short had left behind."""

    v: int = PROTOCOL_VERSION
    pid: int
    pending: tuple[PutBack, ...] = ()


class Opened(Message, frozen=True, kw_only=True, tag="opened"):
    """The device and its ranges."""

    facts: Facts


class Applied(Message, frozen=True, kw_only=True, tag="applied"):
    """Set and read back (a clock lock cannot be read back: ``after`` is ``None``)."""

    knob: str
    requested: float
    before: float | None
    after: float | None


class Alive(Message, frozen=True, kw_only=True, tag="alive"):
    """The lease is renewed."""


class Restored(Message, frozen=True, kw_only=True, tag="restored"):
    """How restoring went, per knob that had been set."""

    results: tuple[PutBack, ...]


class Refused(Message, frozen=True, kw_only=True, tag="refused"):
    """Nothing was changed (or it was put back at once); why."""

    code: str
    message: str


class Bye(Message, frozen=True, kw_only=True, tag="bye"):
    """Last line.

    Attributes:
        reason: ``quit``, ``parent_gone``, ``lease_expired``, ``signal``, ``not_understood``,
            ``not_allowed`` or ``error``.
        results: How restoring went.
    """

    reason: str
    results: tuple[PutBack, ...] = ()


Request = Open | SetPower | SetClocks | KeepAlive | Restore | Quit
Reply = Hello | Opened | Applied | Alive | Restored | Refused | Bye


class NotUnderstood(Exception):
    """A line that is no message of this protocol."""


_REQUEST = msgspec.json.Decoder(Request)
_REPLY = msgspec.json.Decoder(Reply)


def encode(message: Message) -> bytes:
    """Return ``message`` as one line."""
    return msgspec.json.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Return the request in ``line``.

    Raises:
        NotUnderstood: It is not exactly one of the requests, or a number is not finite.
    """
    return _decode(_REQUEST, line)


def decode_reply(line: bytes) -> Reply:
    """Return the reply in ``line``.

    Raises:
        NotUnderstood: It is none.
    """
    return _decode(_REPLY, line)


def power_range(
    low_w: float | None, high_w: float | None, default_w: float | None, now_w: float | None
) -> Range | str:
    """Return what may be set, or the code of why nothing may.

    Never above what was found, never below half the default, whatever the driver would take.

    Args:
        low_w: The driver's minimum; ``None`` or 0 = it names none.
        high_w: The driver's maximum; ``None`` or 0 = it names none.
        default_w: The vendor's default; ``None`` or 0 = the limit found counts as it.
        now_w: The limit in force; 0 = switched off, which could not be put back safely.
    """
    if now_w is None or not math.isfinite(now_w):
        return "limit_not_readable"
    if now_w < FLOOR_MIN_W:
        return "limit_switched_off"
    default = default_w if default_w and default_w >= FLOOR_MIN_W else None
    low = max(low_w or 0.0, FLOOR_FRAC * (default or now_w), FLOOR_MIN_W)
    high = min(high_w or now_w, now_w)
    if not low + TOLERANCE_W <= high:
        return "no_range"
    return Range(low=low, high=high, now=now_w, default=default)


def within(value: float, allowed: Range) -> bool:
    """Whether ``value`` is a finite number inside ``allowed``."""
    return math.isfinite(value) and allowed.low <= value <= allowed.high


def _decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T:
    if len(line) > MAX_LINE_BYTES:
        msg = f"a line of {len(line)} bytes"
        raise NotUnderstood(msg)
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"not a message: {error}"
        raise NotUnderstood(msg) from error
