"""Inverse questions: the answer fits, and one step further does not."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.machine import GpuKind, HostInfo
from app.domain.memory import Verdict
from app.domain.model import ModelSpec
from app.domain.settings import KV_TYPES, FlashAttn, LoadMode, Settings, Switch
from app.domain.sweep import SearchDevice
from app.domain.units import GIB, MIB
from app.memory import Memory
from app.memory.memory import KV_LADDER
from tests.fakes.shapes import a_spec, dense_tensors, moe_tensors

N_LAYER, N_CTX = 12, 32768
DENSE = a_spec(
    n_layer=N_LAYER, n_swa=1024, swa_layers=(True, False) * 6, n_embd=1024, n_vocab=65536,
    n_head=16, n_head_kv=8, k_dim=128, n_ctx_train=N_CTX,
    tensors=dense_tensors(
        n_layer=N_LAYER, n_embd=1024, n_vocab=65536, n_ff=4096, n_q=2048, n_kv=1024, kind="q4_K"
    ),
)  # fmt: skip
MOE = a_spec(
    n_layer=N_LAYER, n_embd=1024, n_vocab=65536, n_head=16, n_head_kv=4, k_dim=128,
    n_ctx_train=N_CTX, n_expert=32, n_expert_used=4,
    tensors=moe_tensors(
        n_layer=N_LAYER, n_embd=1024, n_vocab=65536, n_ff_exp=512, n_expert=32, n_q=2048, n_kv=512
    ),
)  # fmt: skip
LONG = a_spec(
    n_layer=40, n_embd=8192, n_vocab=65536, n_head=16, n_head_kv=8, k_dim=128, n_ctx_train=N_CTX,
    tensors=dense_tensors(
        n_layer=40, n_embd=8192, n_vocab=65536, n_ff=65536, n_q=2048, n_kv=1024, kind="q4_K"
    ),
)  # fmt: skip

kv_types = st.sampled_from(sorted(KV_TYPES))
settings = st.builds(
    Settings,
    n_gpu_layers=st.integers(1, N_LAYER + 1),
    n_ctx=st.integers(256, N_CTX),
    n_ubatch=st.sampled_from([64, 512, 2048]),
    n_seq_max=st.sampled_from([1, 1, 4]),
    flash_attn=st.sampled_from([FlashAttn.ON, FlashAttn.OFF]),
    type_k=kv_types,
    type_v=kv_types,
    offload_kqv=st.sampled_from(list(Switch)),
    load_mode=st.sampled_from(list(LoadMode)),
)


def card(free_mib: int, name: str = "CUDA0", backend: str = "CUDA") -> SearchDevice:
    kind = GpuKind.REMOTE if backend == "RPC" else GpuKind.DISCRETE
    return SearchDevice(
        id=name, kind=kind, backend=backend, total_bytes=8 * GIB, free_bytes=free_mib * MIB
    )


@st.composite
def machines(draw: st.DrawFn) -> Memory:
    """A model beside one device, with little or enough memory, and rules of the user's own."""
    free, ram = draw(st.integers(0, 4096)), draw(st.integers(1024, 16384)) * MIB
    backend = draw(st.sampled_from(["CUDA", "RPC"]))
    return Memory(
        draw(st.sampled_from([DENSE, MOE])),
        (card(free, backend=backend),),
        HostInfo(os="linux", ram_bytes=2 * ram, ram_available_bytes=ram, swap_bytes=0),
        headroom_bytes=draw(st.sampled_from([None, 0, 700 * MIB])),
        reserve_bytes=draw(st.sampled_from([0, 300 * MIB])),
        displays=draw(st.sampled_from([frozenset(), frozenset({"CUDA0"})])),
    )


def fits(memory: Memory, asked: Settings, name: str, value: int) -> bool:
    """Ask for one value; RAM counts for the context only."""
    estimate = memory.estimate(msgspec.structs.replace(asked, **{name: value}))
    devices = [d for d in estimate.devices if name == "n_ctx" or d.device != "host"]
    return bool(devices) and all(d.verdict is Verdict.FITS for d in devices)


@given(memory=machines(), asked=settings)
def test_the_most_layers_are_an_edge(memory: Memory, asked: Settings) -> None:
    """They fit, and one more does not; ``None`` when not even none do."""
    most = memory.max_n_gpu_layers(asked)
    name = "n_gpu_layers"
    if most is None:
        assert not fits(memory, asked, name, 0)
        return
    assert most == 0 or fits(memory, asked, name, most)
    assert most == N_LAYER + 1 or not fits(memory, asked, name, most + 1)


@given(memory=machines(), asked=settings)
def test_the_longest_context_is_an_edge(memory: Memory, asked: Settings) -> None:
    """It fits, also in RAM, and 256 tokens more do not or are beyond the training."""
    longest = memory.max_n_ctx(asked)
    if longest is None:
        assert not fits(memory, asked, "n_ctx", 256)
        return
    assert fits(memory, asked, "n_ctx", longest)
    assert longest == N_CTX or not fits(memory, asked, "n_ctx", longest + 256)


@given(memory=machines(), asked=settings)
def test_the_fewest_expert_layers_are_an_edge(memory: Memory, asked: Settings) -> None:
    """With them it fits, and with one less it does not."""
    fewest = memory.min_n_cpu_moe(asked)
    if memory.spec.n_expert == 0:
        assert fewest is None
        return
    if fewest is None:
        assert not fits(memory, asked, "n_cpu_moe", N_LAYER)
        return
    assert fits(memory, asked, "n_cpu_moe", fewest)
    assert fewest == 0 or not fits(memory, asked, "n_cpu_moe", fewest - 1)


@given(memory=machines(), asked=settings)
def test_the_cheapest_cache_is_the_first_that_fits(memory: Memory, asked: Settings) -> None:
    """Every type that loses less does not fit."""
    found = memory.cheapest_kv(asked)
    for kv_type in KV_LADDER:
        changed = msgspec.structs.replace(asked, type_k=kv_type, type_v=kv_type)
        is_fit = memory.estimate(changed).verdict is Verdict.FITS
        assert is_fit == (kv_type == found)
        if is_fit:
            return


@pytest.mark.parametrize(
    ("spec", "large_mib", "small_mib"),
    [(DENSE, 1840, 1120), (DENSE, 2920, 1120), (DENSE, 2200, 1040), (MOE, 1720, 1240)],
)
def test_a_small_card_between_two_hides_no_layers(
    spec: ModelSpec, large_mib: int, small_mib: int
) -> None:
    """With one layer more the small card's share may round down again: the most of all count."""
    cards = (card(large_mib), card(small_mib, "CUDA1"), card(large_mib, "CUDA2"))
    memory = Memory(spec, cards, HostInfo(os="linux", ram_bytes=64 * GIB))
    asked = Settings(n_gpu_layers=0, n_ctx=8192)
    every = [n for n in range(N_LAYER + 2) if fits(memory, asked, "n_gpu_layers", n)]
    assert every != list(range(every[0], every[-1] + 1)), "no gap: the case shows nothing"
    assert memory.max_n_gpu_layers(asked) == every[-1]


@pytest.mark.parametrize("free_mib", [(7900, 1380, 38900), (6300, 1660, 26300)])
def test_a_card_without_room_for_a_layer_hides_none_on_the_others(
    free_mib: tuple[int, int, int],
) -> None:
    """At many counts in a row its share is a layer, at others beyond it is none."""
    cards = tuple(
        msgspec.structs.replace(card(free, f"CUDA{i}"), total_bytes=48 * GIB)
        for i, free in enumerate(free_mib)
    )
    memory = Memory(LONG, cards, HostInfo(os="linux", ram_bytes=64 * GIB))
    asked = Settings(n_gpu_layers=0, n_ctx=8192)
    every = [n for n in range(LONG.n_layer + 2) if fits(memory, asked, "n_gpu_layers", n)]
    gaps = [later - n for n, later in pairwise(every)]
    assert max(gaps) > len(cards) + 1, "no wide gap: the case shows nothing"
    assert memory.max_n_gpu_layers(asked) == every[-1]
