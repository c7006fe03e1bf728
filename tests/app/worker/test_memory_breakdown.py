"""Reading the ``std::map`` of llama.cpp's memory breakdown, as each C++ library keeps it."""

import ctypes
import struct
from typing import Any

import pytest

from app.worker import native
from app.worker.cancel import EngineFailure
from app.worker.memory_breakdown import Parts, read_breakdown
from app.worker.protocol import NO_BREAKDOWN

GNU, MSVC = native._BREAKDOWN.values()
ENTRIES = {16: Parts(1, 2, 3), 32: Parts(4, 5, 6), 48: Parts(7, 8, 9)}
_NODE_BYTES = 64


class MadeMap:
    """A map of three entries in memory: the middle one is the root."""

    def __init__(self, layout: native.MapLayout) -> None:
        self._layout = layout
        self._kept: list[Any] = []
        # past the end: nothing, or (MSVC) a node marked so
        self._end = 0 if layout.is_end is None else self._node(0, Parts(), is_end=1)
        low, middle, high = (self._node(key, parts) for key, parts in ENTRIES.items())
        self._link(middle, low, high)
        self.root = middle

    def function(self, base: int, _ctx: int) -> None:
        """Write the map to ``base``, as the engine's function does."""
        if self._layout.is_end is None:
            content = struct.pack("<6Q", 0, 0, self.root, 0, 0, len(ENTRIES))
        else:
            ctypes.c_uint64.from_address(self._end + 8).value = self.root  # the head's parent
            content = struct.pack("<2Q", self._end, len(ENTRIES))
        ctypes.memmove(base, content, len(content))

    def _node(self, key: int, parts: Parts, is_end: int = 0) -> int:
        memory = ctypes.create_string_buffer(_NODE_BYTES)
        self._kept.append(memory)
        address = ctypes.addressof(memory)
        struct.pack_into("<4Q", memory, 32, key, *parts)
        if self._layout.is_end is not None:
            struct.pack_into("<B", memory, self._layout.is_end, is_end)
        if not is_end:
            self._link(address, self._end, self._end)
        return address

    def _link(self, node: int, left: int, right: int) -> None:
        ctypes.c_uint64.from_address(node + self._layout.left).value = left
        ctypes.c_uint64.from_address(node + self._layout.right).value = right


@pytest.mark.parametrize("layout", [GNU, MSVC], ids=["libstdc++", "msvc"])
def test_every_entry_is_read(layout: native.MapLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    """All entries come out whichever compiler built the engine."""
    made = MadeMap(layout)
    monkeypatch.setattr(native, "breakdown_function", lambda: (made.function, layout))
    assert dict(read_breakdown(0)) == ENTRIES


def test_build_without_the_function_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that does not export it is told apart from one that failed."""
    monkeypatch.setattr(native, "breakdown_function", lambda: None)
    with pytest.raises(EngineFailure) as caught:
        read_breakdown(0)
    assert caught.value.error.code == NO_BREAKDOWN
