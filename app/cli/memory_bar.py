"""What a configuration needs on each device, drawn to scale with letters: no colour needed."""

from collections.abc import Iterable
from typing import NamedTuple

from rich.text import Text

from app.domain.memory import DeviceMemory
from app.domain.units import MISSING, format_bytes

WIDTH = 60
FREE, LIMIT = "\u00b7", "|"


class Part(NamedTuple):
    """A letter of the bar, its meaning, its colour, and the figures it adds up."""

    letter: str
    label: str
    style: str
    fields: tuple[str, ...]


PARTS = (
    Part("W", "weights", "blue", ("weights_bytes",)),
    Part("K", "KV cache", "green", ("kv_cache_bytes",)),
    Part("S", "state", "cyan", ("recurrent_state_bytes",)),
    Part("C", "compute and output", "yellow", ("compute_bytes", "output_bytes")),
    Part("D", "driver, growth, copies", "magenta", ("driver_context_bytes", "growth_bytes")),
    Part("R", "reserved", "white", ("reserve_bytes",)),
)
OTHERS = Part("o", "others", "dim", ())


def memory_bars(devices: Iterable[DeviceMemory]) -> Text:
    """Return a bar per device and a legend of the letters that occur."""
    text = Text()
    used: set[str] = set()
    shown = list(devices)
    names = {d.device: "RAM" if d.device == "host" else d.device for d in shown}
    width = max((len(name) for name in names.values()), default=0)
    for device in shown:
        cells = bar_cells(device)
        used.update(cells)
        text.append(f"{names[device.device]:<{width}} [")
        for cell in cells:
            text.append(cell, style=_STYLES.get(cell, ""))
        text.append(f"] {_figures(device)}\n")
    labels = [(p.letter, p.label) for p in (*PARTS, OTHERS)]
    labels += [(FREE, "free"), (LIMIT, "here free memory ends")]
    text.append("  ".join(f"{letter} {label}" for letter, label in labels if letter in used))
    return text


def bar_cells(device: DeviceMemory) -> str:
    """Return the letters of one device's bar: others, our parts, what stays free.

    A part that is there gets at least one letter, so that a small one is not lost. Where more is
    needed than is free, a bar marks the end of the free memory.
    """
    free = device.free_bytes
    capacity = device.capacity_bytes or 0
    others = max(0, capacity - free) if capacity and free is not None else 0
    sizes = {OTHERS.letter: others}
    for part in PARTS:
        sizes[part.letter] = sum(getattr(device, field) or 0 for field in part.fields)
    need = sum(n for letter, n in sizes.items() if letter != OTHERS.letter)
    scale = max(capacity, others + max(need, device.total_bytes), 1)
    counts = {c: max(1, round(n * WIDTH / scale)) for c, n in sizes.items() if n}
    missing = max(0, need - free) if free is not None else 0
    room = WIDTH - (missing > 0)
    while sum(counts.values()) > room:  # small parts were rounded up: the largest gives way
        counts[max(counts, key=counts.__getitem__)] -= 1
    letters = "".join(letter * n for letter, n in counts.items()) or FREE
    if not missing:
        return letters.ljust(WIDTH, FREE)
    at = max(0, room - max(1, round(missing * WIDTH / scale)))
    letters = letters.ljust(room, letters[-1])
    return letters[:at] + LIMIT + letters[at:]


def _figures(device: DeviceMemory) -> str:
    free = format_bytes(device.free_bytes)
    if device.free_bytes is None and device.reason:
        free = f"{MISSING} ({device.reason})"
    return f"needs {format_bytes(device.total_bytes)}, free {free}"


_STYLES = {p.letter: p.style for p in (*PARTS, OTHERS)} | {LIMIT: "bold red"}
