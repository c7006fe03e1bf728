"""One GPU, one identity: what probes and engine say of the same card, joined; and its memory."""

from app.machine.devices import (
    best_first,
    flagged,
    judged_memory,
    kind_of,
    placement,
    search_devices,
    stayed_empty,
)
from app.machine.join import aliases, join_machine
from app.machine.merge import merge_infos, merge_samples

__all__ = [
    "aliases",
    "best_first",
    "flagged",
    "join_machine",
    "judged_memory",
    "kind_of",
    "merge_infos",
    "merge_samples",
    "placement",
    "search_devices",
    "stayed_empty",
]
