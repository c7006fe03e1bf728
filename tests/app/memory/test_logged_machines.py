"""Verdicts on machines whose owners logged what happened (shapes and figures as published).

Every logged run and the tests that hold it; without a file it is one of these:

==== ==================================================================================
A01  30b_moe; test_weights: 30b_moe; test_kv: unified pool; test_compute: moe_on_one_card
A03  hybrid_that_failed; test_kv: hybrid (2); test_layers: qwen35_hybrid
A04  test_kv: window of 128, larger batch
A06  free_above_total; test_kv: two slots of their own
A07  test_kv: four unified slots; test_compute: cpu_only; test_weights: repack
A09  windows_card_was_projected; test_kv: window layers with other heads
A10  test_kv: 27B (3); test_compute: full_offload, cpu_only
A12  test_weights: row_split; test_kv: 8 KV heads; test_compute: full_offload
A13  test_kv: the same at 40k; test_compute: cpu_only
A15  test_kv: layers_without_attention
A17  671b; test_kv: latent attention without its latent
A19  test_kv: two KV heads, quantised
A21  22b; test_kv: quantised at 48k
A22  test_kv: one KV head; test_compute: full_offload; test_weights: tied_embedding
A24  slots_cost_a_hybrid_layers; test_kv: rollback, 9B (2)
A25  test_kv: Mamba (4), Falcon-H1; test_layers: pure_state
A27  test_kv: without window cache (20B); test_compute: scores_of_a_whole_context
A28  memory_of_an_apu
==== ==================================================================================
"""

import pytest

from app.domain.machine import GpuKind, HostInfo
from app.domain.memory import DeviceMemory, Verdict
from app.domain.model import RecurrentSpec
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import SearchDevice
from app.domain.units import GIB, MIB
from app.estimate.profile import EngineProfile
from app.memory import Memory
from app.memory.judge import Surroundings, judge
from tests.fakes.shapes import a_spec, dense_tensors, moe_tensors

ALL_LOGITS = EngineProfile(kv_unified=True, n_outputs_max=2048)
RAM = HostInfo(os="linux", ram_bytes=64 * GIB, ram_available_bytes=60 * GIB)


def device(
    free_mib: int, total_mib: int, *, backend: str = "CUDA", kind: GpuKind = GpuKind.DISCRETE
) -> SearchDevice:
    return SearchDevice(
        id=f"{backend}0", kind=kind, backend=backend, total_bytes=total_mib * MIB,
        free_bytes=free_mib * MIB,
    )  # fmt: skip


def test_a_30b_moe_leaves_what_was_left_on_a_40_gib_card() -> None:
    """64k context in four slots of one pool: 2,800 MiB were left, less the driver's part here."""
    spec = a_spec(
        arch="qwen3moe", n_layer=48, n_embd=2048, n_vocab=151936, n_head=32, n_head_kv=4,
        k_dim=128, n_expert=128, n_expert_used=8,
        tensors=moe_tensors(
            n_layer=48, n_embd=2048, n_vocab=151936, n_ff_exp=768, n_expert=128, n_q=4096, n_kv=512
        ),
    )  # fmt: skip
    memory = Memory(spec, (device(39903, 40442),), RAM, profile=ALL_LOGITS)
    gpu = memory.estimate(Settings(n_gpu_layers=49, n_ctx=65536, n_seq_max=4)).devices[0]
    buffers = gpu.total_bytes - (gpu.driver_context_bytes or 0) - (gpu.growth_bytes or 0)
    assert gpu.verdict is Verdict.FITS
    assert 39903 - buffers / MIB == pytest.approx(2800, abs=100)


def test_a_22b_is_not_claimed_to_need_a_sixth_more() -> None:
    """Another tool claimed 29 GB where the card held 23.5: all layers fit, within 5 %."""
    spec = a_spec(
        arch="llama", n_layer=56, n_embd=6144, n_vocab=32768, n_head=48, n_head_kv=8, k_dim=128,
        tensors=dense_tensors(
            n_layer=56, n_embd=6144, n_vocab=32768, n_ff=16384, n_q=6144, n_kv=1024, kind="q6_K",
            embedding="q8_0",
        ),
    )  # fmt: skip
    memory = Memory(spec, (device(24400, 24564),), RAM)
    settings = Settings(n_gpu_layers=57, n_ctx=49152, type_k="q8_0", type_v="q8_0")
    gpu = memory.estimate(settings).devices[0]
    assert (gpu.kv_cache_bytes or 0) / MIB == 5712.0
    assert memory.max_n_gpu_layers(settings) == 57
    no_weights = gpu.total_bytes - (gpu.weights_bytes or 0) + 17295.4 * MIB
    assert no_weights / MIB == pytest.approx(23508, rel=0.05)


def test_one_more_layer_of_a_671b_needs_seven_gib() -> None:
    """The next layer's price is its weights and its cache, told before it is tried."""
    spec = a_spec(
        arch="llama", n_layer=61, n_embd=7168, n_vocab=129280, n_head=128, n_head_kv=128,
        k_dim=192, v_dim=128, n_expert=256, n_expert_used=8,
        tensors=moe_tensors(
            n_layer=61, n_embd=7168, n_vocab=129280, n_ff_exp=2048, n_expert=256, n_q=24576,
            n_kv=24576, kind="q4_K",
        ),
    )  # fmt: skip
    memory = Memory(spec, (device(24000, 24564),), RAM)
    settings = Settings(n_gpu_layers=2, n_ctx=2048, flash_attn=FlashAttn.OFF)
    price = memory.next_layer_bytes(settings)
    block = sum(t.n_bytes for t in spec.tensors if t.name.startswith("blk.30."))
    assert price == pytest.approx(block + 160 * MIB, rel=0.001)
    assert (price or 0) / GIB == pytest.approx(7.0, rel=0.1)


def test_free_above_total_is_named_and_the_need_still_told() -> None:
    """ROCm on an APU reported more free than there is; 71 GiB are needed all the same."""
    part = DeviceMemory(device="ROCm0", kv_cache_bytes=0, total_bytes=71326 * MIB)
    around = Surroundings(devices=(device(120459, 115200, backend="ROCm"),))
    found = judge((part,), Settings(n_gpu_layers=99), around, {})
    assert found.devices[0].free_bytes == 115200 * MIB
    assert found.devices[0].total_bytes >= 71326 * MIB
    assert "ROCm0" in (found.note or "")


@pytest.mark.parametrize(
    ("backend", "free_mib", "total_mib", "carve_out_mib", "expected"),
    [
        ("ROCm", 6368, 6144 + 512, 6144, Verdict.DOES_NOT_FIT),
        ("Vulkan", 53281, 6144 + 49152, 6144, Verdict.FITS),
        # firmware set 48 of 96 GiB aside: 38 GiB fit there although 30 GiB of RAM are left
        ("Vulkan", 47000, 49152 + 22528, 47000, Verdict.FITS),
    ],
)
def test_memory_of_an_apu_is_its_backends(
    backend: str, free_mib: int, total_mib: int, carve_out_mib: int, expected: Verdict
) -> None:
    """38,404 MiB on one APU: each backend's own view decides, and RAM is counted once."""
    one = device(free_mib, total_mib, backend=backend, kind=GpuKind.INTEGRATED)
    host = HostInfo(os="linux", ram_bytes=90 * GIB, ram_available_bytes=50 * GIB)
    if carve_out_mib > 40000:
        host = HostInfo(os="linux", ram_bytes=48 * GIB, ram_available_bytes=30 * GIB)
    around = Surroundings(devices=(one,), host=host, unified={one.id: carve_out_mib * MIB})
    parts = (
        DeviceMemory(device=one.id, kv_cache_bytes=0, total_bytes=38404 * MIB),
        DeviceMemory(device="host", weights_bytes=0, kv_cache_bytes=0, total_bytes=600 * MIB),
    )
    assert judge(parts, Settings(n_gpu_layers=99), around, {}).verdict is expected


def test_a_hybrid_that_failed_to_allocate_is_refused() -> None:
    """26 of 65 layers at 128k: weights and cache fitted, 1,402 MiB of compute did not."""
    logged = DeviceMemory(
        device="CUDA0", weights_bytes=int(6096.65 * MIB), kv_cache_bytes=3584 * MIB,
        recurrent_state_bytes=int(56.11 * MIB), compute_bytes=int(1401.75 * MIB),
        total_bytes=11138 * MIB,
    )  # fmt: skip
    settings = Settings(n_gpu_layers=26, n_ctx=131072, n_ubatch=1024)
    around = Surroundings(devices=(device(10372, 11866),), host=RAM)
    assert judge((logged,), settings, around, {}).verdict is Verdict.DOES_NOT_FIT


def test_a_windows_card_was_projected_alike() -> None:
    """48 layers with two head sizes, ubatch 2048, four slots of one pool: 9,226 MiB, within 3 %."""
    windowed = tuple(i % 6 != 5 for i in range(48))
    spec = a_spec(
        n_layer=48, n_embd=3840, n_vocab=262144, n_head=16, n_swa=1024, swa_layers=windowed,
        n_head_kv=tuple(8 if w else 1 for w in windowed),
        k_dim=tuple(256 if w else 512 for w in windowed),
        tensors=dense_tensors(
            n_layer=48, n_embd=3840, n_vocab=262144, n_ff=15360, n_q=4096, n_kv=2048
        ),
    )  # fmt: skip
    profile = EngineProfile(kv_unified=True)
    card = device(11312, 12084, backend="Vulkan")
    settings = Settings(n_gpu_layers=49, n_ctx=8192, n_ubatch=2048, n_seq_max=4)
    gpu = Memory(spec, (card,), RAM, profile=profile).estimate(settings).devices[0]
    buffers = (gpu.kv_cache_bytes or 0) + (gpu.compute_bytes or 0)
    assert buffers / MIB + 6637.63 == pytest.approx(9226, rel=0.03)


def test_slots_cost_a_hybrid_layers() -> None:
    """Each slot has a state of its own: with four a small card holds fewer layers."""
    recurrent = RecurrentSpec(
        layers=tuple(i for i in range(32) if i % 4 != 3),
        n_embd_r=3 * (4096 + 2 * 16 * 128), n_embd_s=128 * 4096,
    )  # fmt: skip
    spec = a_spec(
        arch="qwen35", n_layer=32, n_embd=4096, n_vocab=248320, n_head=16, k_dim=256,
        n_head_kv=tuple(4 if i % 4 == 3 else 0 for i in range(32)), recurrent=recurrent,
        tensors=dense_tensors(
            n_layer=32, n_embd=4096, n_vocab=248320, n_ff=12288, n_q=4096, n_kv=1024, kind="q6_K"
        ),
    )  # fmt: skip
    profile = EngineProfile(kv_unified=True)
    memory = Memory(spec, (device(5173, 6144, backend="Vulkan"),), RAM, profile=profile)
    most = [
        memory.max_n_gpu_layers(
            Settings(n_gpu_layers=0, n_ctx=8192, n_ubatch=2048, n_seq_max=slots)
        )
        for slots in (1, 4)
    ]
    assert most[0] is not None
    assert most[1] is not None
    assert 0 < most[1] < most[0]
