"""RAM's verdict: what is mapped, copied, pinned, swapped, and shared with a GPU."""

import pytest

from app.domain.machine import GpuKind, HostInfo
from app.domain.memory import DeviceMemory, Verdict
from app.domain.settings import LoadMode, Settings
from app.domain.sweep import SearchDevice
from app.domain.units import GIB
from app.memory.judge import Judgement, Surroundings, judge

DISCRETE, INTEGRATED = GpuKind.DISCRETE, GpuKind.INTEGRATED


def need(n_gib: float, device: str = "host", weights_gib: float = 0) -> DeviceMemory:
    return DeviceMemory(
        device=device, weights_bytes=int(weights_gib * GIB), kv_cache_bytes=0,
        total_bytes=int(n_gib * GIB),
    )  # fmt: skip


def host(available_gib: float, ram_gib: int = 64, swap_gib: int | None = 8) -> HostInfo:
    return HostInfo(
        os="linux", ram_bytes=ram_gib * GIB, ram_available_bytes=int(available_gib * GIB),
        swap_bytes=None if swap_gib is None else swap_gib * GIB,
    )  # fmt: skip


def in_ram(
    n_gib: float, ram: HostInfo, *, load_mode: LoadMode = LoadMode.MMAP, repacked_gib: int = 0
) -> tuple[Verdict, str | None]:
    """Judge weights of ``n_gib`` with a buffer of 1 GiB beside them."""
    around = Surroundings(devices=(), host=ram, repacked_bytes=repacked_gib * GIB)
    part = need(n_gib + 1, weights_gib=n_gib)
    judged = judge((part,), Settings(n_gpu_layers=0, load_mode=load_mode), around, {}).devices[0]
    return judged.verdict, judged.reason


@pytest.mark.parametrize(
    ("available_gib", "expected"),
    [
        (10, (Verdict.FITS, None)),
        (9.5, (Verdict.TIGHT, None)),
        (8.9, (Verdict.DOES_NOT_FIT, "will_thrash")),
        (0.9, (Verdict.DOES_NOT_FIT, "swapped")),
    ],
)
def test_mapped_weights_thrash_when_they_do_not_fit(
    available_gib: float, expected: tuple[Verdict, str | None]
) -> None:
    """8 GiB of mapped weights: re-read from disk; only the buffers can be swapped."""
    assert in_ram(8, host(available_gib)) == expected


@pytest.mark.parametrize(
    ("available_gib", "swap_gib", "reason"),
    [(8, 8, "swapped"), (8, None, "swapped"), (8, 0, "out_of_ram"), (3, 4, "out_of_ram")],
)
def test_copied_weights_are_swapped_or_too_much(
    available_gib: float, swap_gib: int | None, reason: str
) -> None:
    """8 GiB of copied weights and 1 GiB of buffers against RAM and swap."""
    found = in_ram(8, host(available_gib, swap_gib=swap_gib), load_mode=LoadMode.NONE)
    assert found == (Verdict.DOES_NOT_FIT, reason)


def test_rearranged_copies_cannot_be_dropped() -> None:
    """Copies of mapped weights are memory like any other."""
    assert in_ram(4, host(6), repacked_gib=6) == (Verdict.DOES_NOT_FIT, "swapped")


def test_the_sentence_says_what_would_happen() -> None:
    """Each refusal names the need, what there is, and the consequence."""
    around = Surroundings(devices=(), host=host(7))
    judged = judge((need(9, weights_gib=8),), Settings(n_gpu_layers=0), around, {})
    assert "9.00 GiB" in (judged.note or "").replace("\u00a0", " ")
    assert "from disk again" in (judged.note or "")


def test_too_much_pinned_ram_is_tight() -> None:
    """Pinned weights take at most 40 % of RAM and leave 4 GiB available."""
    card = SearchDevice(
        id="CUDA0", kind=DISCRETE, backend="CUDA", total_bytes=24 * GIB, free_bytes=24 * GIB
    )
    around = Surroundings(devices=(card,), host=host(30, ram_gib=32))
    for weights, expected in ((12, (Verdict.FITS, None)), (14, (Verdict.TIGHT, "pinned"))):
        parts = (need(1, "CUDA0"), need(weights, weights_gib=weights))
        settings = Settings(n_gpu_layers=5, load_mode=LoadMode.NONE)
        judged = judge(parts, settings, around, {}).devices[1]
        assert (judged.verdict, judged.reason) == expected


def on_apu(device_gib: float, host_gib: float, *, carve_out_gib: float | None) -> Judgement:
    """12 GiB of RAM available; the device sees them and its carve-out."""
    extra = carve_out_gib or 0
    device = SearchDevice(
        id="Vulkan0", kind=INTEGRATED, backend="Vulkan", total_bytes=int((16 + extra) * GIB),
        free_bytes=int((12 + extra) * GIB),
    )  # fmt: skip
    unified = {} if carve_out_gib is None else {"Vulkan0": int(carve_out_gib * GIB)}
    around = Surroundings(devices=(device,), host=host(12, ram_gib=16), unified=unified)
    parts = (need(device_gib, "Vulkan0"), need(host_gib))
    return judge(parts, Settings(n_gpu_layers=99), around, {})


def test_one_pool_is_counted_once() -> None:
    """On unified memory device and RAM need must fit together, against RAM available now."""
    assert on_apu(8, 4, carve_out_gib=None).verdict is Verdict.FITS  # two memories: both fit
    assert on_apu(8, 4, carve_out_gib=0).verdict is Verdict.DOES_NOT_FIT
    assert on_apu(6, 3, carve_out_gib=0).verdict is Verdict.FITS


def test_a_carve_out_is_not_ram() -> None:
    """What the firmware set aside holds its share without taking RAM from the system."""
    assert on_apu(20, 1, carve_out_gib=16).verdict is Verdict.FITS
    assert on_apu(27, 1, carve_out_gib=16).devices[1].verdict is Verdict.DOES_NOT_FIT
