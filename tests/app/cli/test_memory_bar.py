"""The bar in the terminal: letters to scale, nothing hidden, no colour needed."""

import msgspec
import pytest

from app.cli.memory_bar import WIDTH, bar_cells, memory_bars
from app.domain.memory import DeviceMemory
from app.domain.units import GIB, MIB

CARD = DeviceMemory(
    device="CUDA0", weights_bytes=4 * GIB, kv_cache_bytes=GIB, recurrent_state_bytes=0,
    compute_bytes=300 * MIB, output_bytes=0, driver_context_bytes=530 * MIB,
    growth_bytes=250 * MIB, total_bytes=5 * GIB + 1080 * MIB, free_bytes=8 * GIB,
    capacity_bytes=10 * GIB,
)  # fmt: skip


def test_letters_are_to_scale() -> None:
    """10 GiB on 60 letters: 2 GiB of others are 12, 4 GiB of weights 24, and so on."""
    cells = bar_cells(CARD)
    counts = {letter: cells.count(letter) for letter in "oWKSCDR\u00b7!"}
    assert len(cells) == WIDTH
    assert counts == {
        "o": 12,
        "W": 24,
        "K": 6,
        "S": 0,
        "C": 2,
        "D": 5,
        "R": 0,
        "\u00b7": 11,
        "!": 0,
    }


@pytest.mark.parametrize("free_gib", [0, 1, 5])
def test_the_end_of_free_memory_is_marked(free_gib: int) -> None:
    """A need beyond the free memory keeps all its letters, with a mark where free memory ends."""
    short = msgspec.structs.replace(CARD, free_bytes=free_gib * GIB)
    cells = bar_cells(short)
    assert len(cells) == WIDTH
    assert set("WKCD|") <= set(cells)
    assert "\u00b7" not in cells
    others, need = (10 - free_gib) * GIB, CARD.total_bytes
    beyond = cells.partition("|")[2]
    share = (need - free_gib * GIB) / (others + need)
    assert len(beyond) == pytest.approx(share * WIDTH, abs=2)


def test_small_parts_are_not_lost() -> None:
    """A few KiB of state get their letter, and the bar keeps its width."""
    tiny = msgspec.structs.replace(CARD, recurrent_state_bytes=1024, reserve_bytes=1)
    cells = bar_cells(tiny)
    assert "S" in cells
    assert "R" in cells
    assert len(cells) == WIDTH


def test_nothing_known_is_no_crash() -> None:
    """A device without figures has a bar of its need alone, and the reason for the rest."""
    asleep = DeviceMemory(device="GPU", weights_bytes=GIB, total_bytes=GIB, reason="asleep")
    assert set(bar_cells(asleep)) == {"W"}
    assert "\u2014 (asleep)" in memory_bars((asleep,)).plain
    assert len(bar_cells(DeviceMemory(device="x", total_bytes=0))) == WIDTH


def test_the_legend_names_the_letters_used() -> None:
    """Every letter of any bar is explained once, and no other."""
    legend = memory_bars((CARD,)).plain.splitlines()[-1]
    assert [word[0] for word in legend.split("  ")] == ["W", "K", "C", "D", "o", "\u00b7"]
