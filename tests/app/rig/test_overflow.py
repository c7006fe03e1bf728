"""What rose in shared memory while a trial ran, and what of that is an overflow."""

from typing import Any

import msgspec

from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.settings import LoadMode
from app.domain.trial import Trial
from app.domain.units import GIB, MIB
from app.rig.overflow import Card, with_overflow
from tests.fakes import situations as s

CARDS = {"CUDA0": Card(key="GPU-1", total_bytes=8 * GIB)}
HOST = DeviceMemory(device="host", weights_bytes=2 * GIB, total_bytes=2 * GIB + 100 * MIB)


def seen(outcome: Outcome = Outcome.OK, mode: LoadMode = LoadMode.MMAP, **window: Any) -> Trial:
    trial = s.trial(outcome, window=s.watched(**window), load_mode=mode)
    return with_overflow(msgspec.structs.replace(trial, shared_growth_bytes=None), CARDS, HOST)


def test_a_full_card_whose_shared_memory_rose_has_spilled() -> None:
    """What rose beyond the engine's own buffers in RAM went there against its will."""
    trial = seen(
        vram_peak_bytes={"GPU-1": 8 * GIB - 90 * MIB}, shared_growth_bytes={"GPU-1": 700 * MIB}
    )
    assert trial.shared_growth_bytes == 600 * MIB


def test_staging_beside_free_memory_is_no_overflow() -> None:
    """A driver with room left moved nothing out: what rose is its own."""
    trial = seen(vram_peak_bytes={"GPU-1": 4 * GIB}, shared_growth_bytes={"GPU-1": 700 * MIB})
    assert trial.shared_growth_bytes == 0


def test_pinned_weights_are_no_overflow() -> None:
    """Weights that lie in pinned RAM on purpose count as shared with the driver."""
    window: dict[str, Any] = {
        "vram_peak_bytes": {"GPU-1": 8 * GIB},
        "shared_growth_bytes": {"GPU-1": 2 * GIB + 110 * MIB},
    }
    assert seen(mode=LoadMode.NONE, **window).shared_growth_bytes == 10 * MIB
    assert (seen(mode=LoadMode.MMAP, **window).shared_growth_bytes or 0) > GIB


def test_what_was_not_seen_is_not_zero() -> None:
    """Linux has no such figure for NVIDIA: unknown stays unknown; another card's says nothing."""
    assert seen().shared_growth_bytes is None
    assert seen(shared_growth_bytes={"GPU-2": GIB}).shared_growth_bytes is None
