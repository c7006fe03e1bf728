"""What an estimate proposes where something does not fit, or is dear for nothing."""

import msgspec

from app.domain.machine import GpuKind, HostInfo
from app.domain.memory import Verdict
from app.domain.model import RecurrentSpec
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import SearchDevice
from app.domain.units import GIB, MIB
from app.memory import Memory
from app.session.estimating import answer
from tests.fakes.shapes import a_spec, dense_tensors

HOST = HostInfo(os="linux", ram_bytes=64 * GIB, ram_available_bytes=60 * GIB)
DENSE = a_spec(
    n_layer=20, n_embd=2048, n_vocab=32768, n_head=32, n_head_kv=4, k_dim=64,
    tensors=dense_tensors(
        n_layer=20, n_embd=2048, n_vocab=32768, n_ff=8192, n_q=2048, n_kv=256, kind="q4_K"
    ),
)  # fmt: skip
HYBRID = a_spec(
    arch="qwen35", n_layer=20, n_embd=2048, n_vocab=32768, n_head=16,
    n_head_kv=tuple(0 if (i + 1) % 4 else 4 for i in range(20)), k_dim=128,
    recurrent=RecurrentSpec(
        layers=tuple(i for i in range(20) if (i + 1) % 4), n_embd_r=MIB, n_embd_s=3 * MIB
    ),
    tensors=DENSE.tensors,
)  # fmt: skip


def card(free_bytes: int, name: str = "CUDA0") -> SearchDevice:
    return SearchDevice(
        id=name, kind=GpuKind.DISCRETE, backend="CUDA", total_bytes=8 * GIB,
        free_bytes=free_bytes,
    )  # fmt: skip


def test_plain_attention_in_ram_is_advised_against() -> None:
    """The scores of 32 heads over 40,960 cells cost 2.5 GiB that flash attention does not."""
    asked = Settings(n_gpu_layers=0, n_ctx=40960, flash_attn=FlashAttn.OFF)
    found = answer(Memory(DENSE, (), HOST), asked)
    assert found.estimate.verdict is Verdict.FITS
    (remedy,) = found.remedies
    assert (remedy.knob, remedy.value) == ("flash_attn", "on")
    assert 2.3 * GIB < remedy.saved_bytes < 2.7 * GIB


def test_a_large_batch_that_does_not_fit_is_cut() -> None:
    """Before anything is loaded: fewer layers, a finer cache, or llama.cpp's own batch."""
    asked = Settings(n_gpu_layers=21, n_ctx=65536, n_ubatch=4096, n_batch=4096)
    found = answer(Memory(DENSE, (card(3 * GIB),), HOST), asked)
    assert found.estimate.verdict is Verdict.DOES_NOT_FIT
    assert (found.max_n_gpu_layers or 0) < 21
    (remedy,) = found.remedies
    assert (remedy.knob, remedy.value) == ("n_ubatch", "512")
    assert (remedy.max_n_gpu_layers or 0) > (found.max_n_gpu_layers or 0)


def test_one_slot_gives_a_hybrid_layers_back() -> None:
    """Four slots keep four states of every recurrent layer; one slot leaves room for layers."""
    asked = Settings(n_gpu_layers=21, n_ctx=8192, n_seq_max=4)
    found = answer(Memory(HYBRID, (card(2 * GIB),), HOST), asked)
    assert found.estimate.verdict is not Verdict.FITS
    remedy = next(r for r in found.remedies if r.knob == "n_seq_max")
    # three states of 16 MiB in 15 layers, less the longer mask of the one slot
    assert 0.95 < remedy.saved_bytes / (15 * 3 * 16 * MIB) <= 1
    assert (remedy.max_n_gpu_layers or 0) > (found.max_n_gpu_layers or 0)


def test_what_fits_needs_no_remedy() -> None:
    """A large batch that fits is the user's choice."""
    asked = Settings(n_gpu_layers=21, n_ctx=4096, n_ubatch=2048, n_seq_max=2)
    assert answer(Memory(DENSE, (card(8 * GIB),), HOST), asked).remedies == ()


def test_a_full_device_that_forbids_every_layer_is_named() -> None:
    """Every device keeps its headroom, so one without room for a layer leaves none for the other.

    With the shares given, or with room on neither device, there is nothing to leave out.
    """
    asked = Settings(n_gpu_layers=21, n_ctx=4096)
    cards = (card(6 * GIB), card(100 * MIB, "CUDA1"))
    found = answer(Memory(DENSE, cards, HOST), asked)
    alone = Memory(DENSE, cards[:1], HOST).max_n_gpu_layers(asked)
    assert found.max_n_gpu_layers == 0
    said = f"No room for a layer on CUDA1. GPU layers that fit on CUDA0 alone: {alone}."
    assert said in (found.estimate.note or "")
    shared = msgspec.structs.replace(asked, tensor_split="1,1")
    assert "No room" not in (answer(Memory(DENSE, cards, HOST), shared).estimate.note or "")
    neither = (card(100 * MIB), cards[1])
    assert "No room" not in (answer(Memory(DENSE, neither, HOST), asked).estimate.note or "")
