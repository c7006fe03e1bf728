"""Memory modules in the firmware's SMBIOS table (type 17). The table is hostile input."""

from app.domain.record import Record

CHASSIS, MEMORY_DEVICE, END = 3, 17, 127
SPEED_AT, CONFIGURED_AT, SIZE_AT = 0x15, 0x20, 0x0C
TYPE_AT = 0x05
KIND_AT = 0x12
KINDS = {24: "DDR3", 26: "DDR4", 27: "LPDDR", 28: "LPDDR2", 29: "LPDDR3", 30: "LPDDR4"}
KINDS |= {34: "DDR5", 35: "LPDDR5"}
"""SMBIOS memory type → its name."""
UNKNOWN = 0xFFFF


class Modules(Record, frozen=True, kw_only=True):
    """What is plugged in.

    Attributes:
        slots: Memory slots.
        populated: Slots with a module.
        kind: Kind of memory, e.g. ``DDR5``.
        speed_mt_s: Slowest configured speed, 10⁶ transfers per second.
    """

    slots: int
    populated: int
    kind: str | None
    speed_mt_s: int | None


def memory_modules(table: bytes) -> Modules | None:
    """Return the memory modules, or ``None`` when the table names no slot."""
    devices = [data for kind, data in structures(table) if kind == MEMORY_DEVICE]
    if not devices:
        return None
    used = [d for d in devices if _word(d, SIZE_AT) not in {0, None}]
    speeds = [
        speed
        for d in used
        if (speed := _speed(d, CONFIGURED_AT) or _speed(d, SPEED_AT)) is not None
    ]
    kinds = {KINDS.get(d[KIND_AT]) for d in used if len(d) > KIND_AT}
    return Modules(
        slots=len(devices),
        populated=len(used),
        kind=kinds.pop() if len(kinds) == 1 else None,
        speed_mt_s=min(speeds) if speeds else None,
    )


def chassis_type(table: bytes) -> int | None:
    """Return the kind of enclosure (desktop, notebook…), ``None`` where the table has none."""
    found = [data for kind, data in structures(table) if kind == CHASSIS and len(data) > TYPE_AT]
    # The top bit says whether it has a lock.
    return found[0][TYPE_AT] & 0x7F if found else None


def structures(table: bytes) -> list[tuple[int, bytes]]:
    """Return type and formatted part of each structure up to the end or the first damage."""
    found = []
    at = 0
    while at + 4 <= len(table):
        kind, length = table[at], table[at + 1]
        if length < 4 or at + length > len(table) or kind == END:
            break
        found.append((kind, table[at : at + length]))
        # Texts follow, each ended by NUL, the set ended by one more.
        end = table.find(b"\0\0", at + length)
        if end < 0:
            break
        at = end + 2
    return found


def _word(data: bytes, at: int) -> int | None:
    return int.from_bytes(data[at : at + 2], "little") if at + 2 <= len(data) else None


def _speed(data: bytes, at: int) -> int | None:
    value = _word(data, at)
    return value if value and value != UNKNOWN else None
