"""Verdicts: floor, headroom, displays, RAM, shared pools and odd probes."""

import pytest

from app.domain.machine import GpuKind, HostInfo
from app.domain.memory import DeviceMemory, Verdict
from app.domain.settings import FlashAttn, LoadMode, Settings
from app.domain.sweep import SearchDevice
from app.domain.units import GIB, MIB
from app.memory.judge import Judgement, Surroundings, judge
from app.memory.overhead import Overhead, calibration_slot

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


def test_reserve_is_kept_on_the_first_device() -> None:
    """What else must fit (a projector, a game) is taken from the free memory."""
    around = Surroundings(devices=(card(4 * GIB + PRIORS + GIB),), reserve_bytes=GIB)
    assert verdict(4 * GIB, around) is Verdict.TIGHT


def test_cpu_backed_devices_have_no_driver_context() -> None:
    """A server that computes on its CPU takes little beside the buffers."""
    around = Surroundings(devices=(card(GIB + 300 * MIB, backend="RPC"),))
    judged = judge((need(GIB, "RPC0"),), SETTINGS, around, {}).devices[0]
    assert judged.driver_context_bytes == 0
    assert judged.verdict is Verdict.FITS


def test_calibration_replaces_the_priors() -> None:
    """What a real load showed counts, for its shape only."""
    slot = calibration_slot("CUDA0", SETTINGS, has_cpu_layers=False)
    seen = Overhead(driver_context_bytes=100 * MIB, growth_bytes=50 * MIB, is_measured=True)
    around = Surroundings(devices=(card(8 * GIB),), calibration={slot: seen})
    known = judge((need(GIB),), SETTINGS, around, {}).devices[0]
    assert (known.driver_context_bytes, known.growth_bytes) == (100 * MIB, 50 * MIB)
    other = Settings(n_gpu_layers=99, n_ubatch=2048)
    assert judge((need(GIB),), other, around, {}).devices[0].growth_bytes == 250 * MIB


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


def in_ram(
    n_bytes: int, available: int, *, load_mode: LoadMode = LoadMode.MMAP, **around: object
) -> Judgement:
    host = HostInfo(os="linux", ram_bytes=32 * GIB, ram_available_bytes=available)
    settings = Settings(n_gpu_layers=0, load_mode=load_mode)
    surroundings = Surroundings(devices=(), host=host, **around)  # type: ignore[arg-type]
    return judge((need(n_bytes, "host", weights=n_bytes),), settings, surroundings, {})


def test_weights_beyond_the_available_ram_thrash() -> None:
    """More in RAM than is available does not fit, and the sentence says what would happen."""
    assert in_ram(8 * GIB, 10 * GIB).verdict is Verdict.FITS
    assert in_ram(8 * GIB, 8 * GIB + 1).verdict is Verdict.TIGHT
    over = in_ram(8 * GIB, 7 * GIB)
    assert over.verdict is Verdict.DOES_NOT_FIT
    assert "read from disk again" in (over.note or "")
    assert "swapped" in (in_ram(8 * GIB, 7 * GIB, load_mode=LoadMode.NONE).note or "")


def test_rearranged_copies_count_in_ram() -> None:
    """Copies of mapped weights are memory that cannot be given back."""
    assert in_ram(8 * GIB, 10 * GIB, repacked_bytes=3 * GIB).verdict is Verdict.DOES_NOT_FIT


def test_too_much_pinned_ram_is_tight() -> None:
    """Pinned weights take at most 40 % of RAM and leave 4 GiB available."""
    host = HostInfo(os="linux", ram_bytes=32 * GIB, ram_available_bytes=30 * GIB)
    around = Surroundings(devices=(card(24 * GIB),), host=host)
    for weights, expected in ((12 * GIB, Verdict.FITS), (14 * GIB, Verdict.TIGHT)):
        parts = (need(GIB), need(weights, "host", weights=weights))
        settings = Settings(n_gpu_layers=5, load_mode=LoadMode.NONE)
        assert judge(parts, settings, around, {}).verdict is expected


def test_one_pool_is_counted_once() -> None:
    """On unified memory device and RAM need must fit together, against RAM available now."""
    host = HostInfo(os="linux", ram_bytes=16 * GIB, ram_available_bytes=12 * GIB)
    around = Surroundings(devices=(card(12 * GIB, 16 * GIB),), host=host)
    parts = (need(8 * GIB), need(4 * GIB, "host"))
    assert judge(parts, SETTINGS, around, {}).verdict is Verdict.FITS
    shared = Surroundings(devices=around.devices, host=host, unified=frozenset({"CUDA0"}))
    assert judge(parts, SETTINGS, shared, {}).verdict is Verdict.DOES_NOT_FIT


def test_unknown_ram_says_nothing_against_it() -> None:
    """Without a reading of RAM the devices decide."""
    around = Surroundings(devices=(card(24 * GIB),))
    judged = judge((need(GIB), need(GIB, "host")), SETTINGS, around, {})
    assert judged.devices[1].verdict is Verdict.UNKNOWN
    assert judged.verdict is Verdict.FITS
