"""Overflow and heat as the probes saw them become part of a trial's outcome."""

from typing import Any

import msgspec
import pytest

from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.settings import LoadMode
from app.domain.trial import Trial
from app.domain.units import GIB, MIB
from app.rig.seen import Card, judged
from tests.fakes import situations as s

CARDS = {"CUDA0": Card(key="GPU-1", total_bytes=8 * GIB)}
HOST = DeviceMemory(device="host", weights_bytes=2 * GIB, total_bytes=2 * GIB + 100 * MIB)


def seen(outcome: Outcome = Outcome.OK, mode: LoadMode = LoadMode.MMAP, **window: Any) -> Trial:
    trial = s.trial(outcome, window=s.watched(**window), load_mode=mode)
    return judged(msgspec.structs.replace(trial, shared_growth_bytes=None), CARDS, HOST)


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


@pytest.mark.parametrize("reason", ["hw_thermal", "sw_thermal", "hw_power_brake"])
def test_heat_on_the_used_card_marks_the_trial(reason: str) -> None:
    """Slowed down by heat: the trial is repeated, and may still win."""
    assert seen(throttle={"GPU-1": (reason,)}).outcome is Outcome.THROTTLED


def test_a_power_limit_is_the_normal_state() -> None:
    """Neither the power limit nor another card's heat makes a trial throttled."""
    assert seen(throttle={"GPU-1": ("sw_power_cap",)}).outcome is Outcome.OK
    assert seen(throttle={"GPU-2": ("hw_thermal",)}).outcome is Outcome.OK


def test_a_failure_stays_what_it_was() -> None:
    """Out of memory on a hot card is out of memory."""
    trial = seen(Outcome.OUT_OF_MEMORY, throttle={"GPU-1": ("hw_thermal",)})
    assert trial.outcome is Outcome.OUT_OF_MEMORY
