"""Verdicts: floor, headroom, displays, RAM, shared pools and odd probes."""

import msgspec
import pytest

from app.domain.machine import GpuKind
from app.domain.memory import DeviceMemory, Verdict
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import SearchDevice
from app.domain.units import GIB, MIB
from app.memory.judge import Surroundings, judge
from app.memory.overhead import Overhead, calibration_slot, depth_bucket

SETTINGS = Settings(n_gpu_layers=99)
PRIORS = (530 + 250) * MIB


def card(free: int, total: int = 24 * GIB, backend: str = "CUDA") -> SearchDevice:
    kind = GpuKind.REMOTE if backend == "RPC" else GpuKind.DISCRETE
    return SearchDevice(
        id=f"{backend}0", kind=kind, backend=backend, total_bytes=total, free_bytes=free
    )


def need(n_bytes: int, device: str = "CUDA0", weights: int = 0) -> DeviceMemory:
    return DeviceMemory(device=device, weights_bytes=weights, kv_cache_bytes=0, total_bytes=n_bytes)


def verdict(n_bytes: int, around: Surroundings, settings: Settings = SETTINGS) -> Verdict:
    device = around.devices[0].id
    return judge((need(n_bytes, device),), settings, around, {}).verdict


@pytest.mark.parametrize(
    ("left_mib", "expected"),
    [
        (256, Verdict.FITS),
        (255, Verdict.TIGHT),
        (32, Verdict.TIGHT),
        (31, Verdict.DOES_NOT_FIT),
        (-1, Verdict.DOES_NOT_FIT),
    ],
)
def test_what_is_left_decides(left_mib: int, expected: Verdict) -> None:
    """256 MiB stay free, and after growth at least 32: below that the first batch aborts."""
    free = 4 * GIB + PRIORS + left_mib * MIB
    assert verdict(4 * GIB, Surroundings(devices=(card(free),))) == expected


@pytest.mark.parametrize(
    ("left_mib", "expected"),
    [(512, Verdict.FITS), (511, Verdict.TIGHT), (255, Verdict.DOES_NOT_FIT)],
)
def test_a_display_needs_more(left_mib: int, expected: Verdict) -> None:
    """512 MiB on a card that drives a display, and never below 256."""
    free = 4 * GIB + PRIORS + left_mib * MIB
    around = Surroundings(devices=(card(free),), displays=frozenset({"CUDA0"}))
    assert verdict(4 * GIB, around) == expected


def test_the_users_headroom_replaces_the_rule() -> None:
    """What the user wants left free counts, in both directions."""
    device = card(4 * GIB + PRIORS + 300 * MIB)
    assert verdict(4 * GIB, Surroundings(devices=(device,), headroom_bytes=GIB)) is Verdict.TIGHT
    tight = card(4 * GIB + PRIORS + 100 * MIB)
    assert verdict(4 * GIB, Surroundings(devices=(tight,), headroom_bytes=0)) is Verdict.FITS


@pytest.mark.parametrize(
    ("left_mib", "expected"),
    [(1280, Verdict.FITS), (1279, Verdict.TIGHT), (1055, Verdict.DOES_NOT_FIT)],
)
def test_reserve_is_kept_on_the_first_device(left_mib: int, expected: Verdict) -> None:
    """What else must fit (a projector, a game) is taken from the free memory, once."""
    free = 4 * GIB + PRIORS + left_mib * MIB
    second = msgspec.structs.replace(card(free), id="CUDA1")
    around = Surroundings(devices=(card(free), second), reserve_bytes=GIB)
    assert verdict(4 * GIB, around) == expected
    parts = (need(GIB), need(GIB, "CUDA1"))
    judged = judge(parts, SETTINGS, around, {}).devices
    assert [d.reserve_bytes for d in judged] == [GIB, 0]


def test_cpu_backed_devices_have_no_driver_context() -> None:
    """A server that computes on its CPU takes little beside the buffers."""
    around = Surroundings(devices=(card(GIB + 300 * MIB, backend="RPC"),))
    judged = judge((need(GIB, "RPC0"),), SETTINGS, around, {}).devices[0]
    assert judged.driver_context_bytes == 0
    assert judged.verdict is Verdict.FITS


def test_calibration_replaces_the_priors() -> None:
    """What a real load showed counts, for its shape only."""
    slot = calibration_slot("CUDA0", SETTINGS, has_cpu_layers=False)
    seen = Overhead(driver_context_bytes=100 * MIB, growth_bytes=50 * MIB, measured=("growth",))
    around = Surroundings(devices=(card(8 * GIB),), calibration={slot: seen})
    known = judge((need(GIB),), SETTINGS, around, {}).devices[0]
    assert (known.driver_context_bytes, known.growth_bytes) == (100 * MIB, 50 * MIB)
    assert known.measured_parts == ("growth",)
    other = Settings(n_gpu_layers=99, n_ubatch=2048)
    assert judge((need(GIB),), other, around, {}).devices[0].growth_bytes == 250 * MIB


def test_a_drivers_context_counts_for_every_shape() -> None:
    """Measured once per device; only growth depends on the shape."""
    seen = Overhead(driver_context_bytes=300 * MIB, growth_bytes=0)
    around = Surroundings(devices=(card(8 * GIB),), calibration={"CUDA0": seen})
    judged = judge((need(GIB),), SETTINGS, around, {}).devices[0]
    assert (judged.driver_context_bytes, judged.growth_bytes) == (300 * MIB, 250 * MIB)
    assert judged.measured_parts == ("driver_context",)


@pytest.mark.parametrize(("depth", "bucket"), [(0, 2048), (2048, 2048), (2049, 4096), (5000, 8192)])
def test_depths_are_learned_in_buckets(depth: int, bucket: int) -> None:
    """A depth counts as the next power of two, small ones as 2,048."""
    assert depth_bucket(depth) == bucket


def test_plain_attention_grows_with_the_context() -> None:
    """Without flash attention growth reaches 1.1 GiB at 32k."""
    plain = Settings(n_gpu_layers=99, n_ctx=32768, flash_attn=FlashAttn.OFF)
    around = Surroundings(devices=(card(8 * GIB),))
    assert judge((need(GIB),), plain, around, {}).devices[0].growth_bytes == 1126 * MIB


def test_free_memory_above_the_total_is_not_believed() -> None:
    """A probe that reports more free memory than there is gets cut and named."""
    around = Surroundings(devices=(card(free=120 * GIB, total=8 * GIB),))
    judged = judge((need(10 * GIB),), SETTINGS, around, {})
    assert judged.verdict is Verdict.DOES_NOT_FIT
    assert judged.devices[0].free_bytes == 8 * GIB
    assert judged.note is not None
    assert "CUDA0" in judged.note


def test_a_device_without_memory_figures_is_unknown() -> None:
    """Zero free of zero is no statement."""
    around = Surroundings(devices=(card(free=0, total=0),))
    assert verdict(GIB, around) is Verdict.UNKNOWN


def test_weights_alone_can_only_refute() -> None:
    """Where cache and compute are unknown: too big is known, fitting is not."""
    part = DeviceMemory(device="CUDA0", weights_bytes=GIB, total_bytes=GIB)
    roomy = Surroundings(devices=(card(8 * GIB),))
    full = Surroundings(devices=(card(GIB),))
    assert judge((part,), SETTINGS, roomy, {}).verdict is Verdict.UNKNOWN
    assert judge((part,), SETTINGS, full, {}).verdict is Verdict.DOES_NOT_FIT


def test_the_error_bar_makes_it_tight() -> None:
    """A formula's total that fits only without its error is tight."""
    around = Surroundings(devices=(card(4 * GIB + PRIORS + 300 * MIB),))
    judged = judge((need(4 * GIB),), SETTINGS, around, {"CUDA0": 100 * MIB})
    assert judged.verdict is Verdict.TIGHT


def test_a_sleeping_device_is_unknown_unless_too_small() -> None:
    """Free memory that cannot be read is absent with its reason; the total still refutes."""
    around = Surroundings(devices=(card(8 * GIB, 8 * GIB),), unread={"CUDA0": "asleep"})
    judged = judge((need(GIB),), SETTINGS, around, {}).devices[0]
    assert (judged.verdict, judged.reason, judged.free_bytes) == (Verdict.UNKNOWN, "asleep", None)
    assert verdict(9 * GIB, around) is Verdict.DOES_NOT_FIT


def test_unknown_ram_says_nothing_against_it() -> None:
    """Without a reading of RAM the devices decide."""
    around = Surroundings(devices=(card(24 * GIB),))
    judged = judge((need(GIB), need(GIB, "host")), SETTINGS, around, {})
    assert judged.devices[1].verdict is Verdict.UNKNOWN
    assert judged.verdict is Verdict.FITS
