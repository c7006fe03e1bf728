"""Per layer: attention heads, head sizes, sliding window and recurrent state.

Follows ``llama_model_base::load_hparams`` and src/llama-hparams.cpp of llama.cpp.
"""

from collections.abc import Mapping
from typing import NamedTuple

from app.domain.model import RecurrentSpec
from app.gguf.architectures import (
    CACHELESS_ARCHS,
    EXAONE4_SWA_LAYERS,
    FULL_ATTENTION_INTERVAL,
    HYBRID_ARCHS,
    KV_FROM_START,
    RECURRENT_ARCHS,
    SHARED_KV_ARCHS,
    SLIDING_WINDOWS,
    SMALLTHINKER_NEEDS_KEY,
    SlidingWindow,
)
from app.gguf.metadata import Metadata

_STATE_TENSORS = ("ssm_", "time_mix_", "shortconv.")


class Shape(NamedTuple):
    """What the layers' layout is derived from.

    Attributes:
        arch: Architecture.
        metadata: The first shard's pairs.
        n_layer: Blocks in the file.
        n_layer_trunk: Blocks less the draft (NextN, MTP) blocks at the end.
        n_embd: Embedding length.
        layer_tensors: Tensor names of each block, without ``blk.N.``.
    """

    arch: str
    metadata: Metadata
    n_layer: int
    n_layer_trunk: int
    n_embd: int
    layer_tensors: Mapping[int, frozenset[str]]

    def integer(self, key: str, default: int = 0) -> int:
        """Return ``<arch>.key``, or ``default`` where the file does not state it."""
        value = self.metadata.integer(f"{self.arch}.{key}")
        return default if value is None else value

    def per_layer(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Return ``<arch>.key`` for each layer, or ``default``."""
        values = self.metadata.per_layer(f"{self.arch}.{key}", self.n_layer)
        return default if values is None else values


class Layers(NamedTuple):
    """Per-layer tuples and what goes with them; the fields are ``ModelSpec``'s."""

    n_head: tuple[int, ...]
    n_head_kv: tuple[int, ...]
    n_embd_head_k: tuple[int, ...]
    n_embd_head_v: tuple[int, ...]
    n_swa: int
    swa_layers: tuple[bool, ...]
    kv_shared_from: int | None
    mla_kv_lora_rank: int | None
    mla_rope_dim: int | None
    recurrent: RecurrentSpec | None


def derive_layers(shape: Shape) -> Layers:
    """Return the layers' layout.

    Raises:
        EnvironmentProblem: A metadata value has a wrong type or length.
    """
    none = (0,) * shape.n_layer
    n_head = shape.per_layer("attention.head_count", none)
    n_head_kv = shape.per_layer("attention.head_count_kv", n_head)
    recurrent = _recurrent_layers(shape, n_head_kv)
    n_swa, swa_layers = _sliding_window(shape, recurrent)
    head_k, head_v = _head_sizes(shape, n_head, swa_layers)
    shared_from = _kv_shared_from(shape)
    lora_rank, rope_dim = _mla(shape, head_k)
    return Layers(
        n_head=n_head,
        n_head_kv=_cached_heads(shape, n_head_kv, recurrent, shared_from),
        n_embd_head_k=head_k,
        n_embd_head_v=head_v,
        n_swa=n_swa,
        swa_layers=swa_layers,
        kv_shared_from=shared_from,
        mla_kv_lora_rank=lora_rank,
        mla_rope_dim=rope_dim,
        recurrent=_recurrent_spec(shape, recurrent, n_head, head_k),
    )


def _head_sizes(
    shape: Shape, n_head: tuple[int, ...], swa_layers: tuple[bool, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of the first layer's heads hold for all, windowed layers may have their own."""
    first = n_head[0] if n_head else 0
    default = shape.n_embd // first if first else 0
    sizes = []
    for kind in ("key_length", "value_length"):
        has_heads = first or shape.arch == "plamo2"
        full = shape.integer(f"attention.{kind}", default) if has_heads else 0
        windowed = shape.integer(f"attention.{kind}_swa", full)
        sizes.append(tuple(windowed if swa else full for swa in swa_layers))
    return sizes[0], sizes[1]


def _sliding_window(shape: Shape, recurrent: frozenset[int]) -> tuple[int, tuple[bool, ...]]:
    none = (False,) * shape.n_layer
    if shape.arch == "lfm2":
        n_swa = shape.integer("attention.sliding_window")
        windowed = tuple(
            il not in recurrent and il < shape.n_layer_trunk for il in range(shape.n_layer)
        )
        return (n_swa, windowed) if n_swa else (0, none)
    rule = SLIDING_WINDOWS.get(shape.arch)
    n_swa = _window(shape, rule) if rule else 0
    if rule is None or n_swa == 0:
        return 0, none
    layers = _swa_pattern(shape, rule)
    return (n_swa, layers) if any(layers) else (0, none)


def _window(shape: Shape, rule: SlidingWindow) -> int:
    stated = shape.metadata.integer(f"{shape.arch}.attention.sliding_window")
    if shape.arch == "exaone4" and shape.n_layer_trunk != EXAONE4_SWA_LAYERS:
        return 0
    if stated is None:
        return 0 if shape.arch == SMALLTHINKER_NEEDS_KEY else rule.n_swa
    return rule.n_swa if rule.fixed and stated else stated


def _swa_pattern(shape: Shape, rule: SlidingWindow) -> tuple[bool, ...]:
    """The file's list, else its period, else the architecture's (``load_swa_pattern``)."""
    key = f"{shape.arch}.attention.sliding_window_pattern"
    if shape.metadata.is_array(key):
        stated = [bool(v) for v in shape.metadata.integers(key)][: shape.n_layer]
        return tuple(stated) + (False,) * (shape.n_layer - len(stated))
    if rule.period == 0:
        return (False,) * shape.n_layer
    period = shape.metadata.integer(key)
    period = rule.period if period is None else period
    return tuple(
        il < shape.n_layer_trunk and _is_windowed(il, period, dense_first=rule.dense_first)
        for il in range(shape.n_layer)
    )


def _is_windowed(il: int, period: int, *, dense_first: bool) -> bool:
    if period == 0:
        return True
    return il % period != 0 if dense_first else il % period < period - 1


def _kv_shared_from(shape: Shape) -> int | None:
    first = KV_FROM_START.get(shape.arch, shape.n_layer)
    if shape.arch in SHARED_KV_ARCHS:
        first = shape.n_layer - shape.integer("attention.shared_kv_layers")
    return first if 0 < first < shape.n_layer else None


def _mla(shape: Shape, head_k: tuple[int, ...]) -> tuple[int | None, int | None]:
    """With both MLA lengths in the file the cache holds one latent K per token, and no V."""
    has_mla = shape.integer("attention.key_length_mla") and shape.integer(
        "attention.value_length_mla"
    )
    rank = shape.integer("attention.kv_lora_rank")
    if not has_mla or not rank or not head_k:
        return None, None
    return rank, max(0, max(head_k) - rank)


def _cached_heads(
    shape: Shape,
    n_head_kv: tuple[int, ...],
    recurrent: frozenset[int],
    shared_from: int | None,
) -> tuple[int, ...]:
    end = shape.n_layer if shared_from is None else shared_from
    return tuple(
        heads if il < end and _has_cache(shape, il, recurrent) else 0
        for il, heads in enumerate(n_head_kv)
    )


def _has_cache(shape: Shape, il: int, recurrent: frozenset[int]) -> bool:
    if shape.arch in RECURRENT_ARCHS or shape.arch in CACHELESS_ARCHS:
        return False
    if il in recurrent:
        # Falcon-H1 has attention and state side by side in every layer.
        return "attn_k.weight" in shape.layer_tensors.get(il, ())
    if shape.arch.startswith("nemotron_h"):
        # A block is attention, state or feed-forward, never two of them.
        return shape.per_layer("feed_forward_length", (0,) * shape.n_layer)[il] == 0
    if il < shape.n_layer_trunk:
        return True
    # Draft layers: hybrids without a layer filter of their own cache them too.
    return shape.arch in HYBRID_ARCHS and shape.arch not in FULL_ATTENTION_INTERVAL


def _recurrent_layers(shape: Shape, n_head_kv: tuple[int, ...]) -> frozenset[int]:
    """The tensor table shows them; metadata decides where the tensors look like attention."""
    if shape.arch in RECURRENT_ARCHS:
        return frozenset(range(shape.n_layer))
    trunk = range(shape.n_layer_trunk)
    found = frozenset(
        il
        for il in trunk
        if any(name.startswith(_STATE_TENSORS) for name in shape.layer_tensors.get(il, ()))
    )
    if found or shape.arch not in HYBRID_ARCHS:
        return found
    if shape.arch not in FULL_ATTENTION_INTERVAL:
        return frozenset(il for il in trunk if n_head_kv[il] == 0)
    key = f"{shape.arch}.attention.recurrent_layers"
    if key in shape.metadata:
        stated = shape.metadata.per_layer(key, shape.n_layer) or ()
        return frozenset(il for il in trunk if stated[il])
    interval = shape.integer("full_attention_interval", FULL_ATTENTION_INTERVAL[shape.arch])
    return frozenset(il for il in trunk if interval == 0 or (il + 1) % interval)


def _recurrent_spec(
    shape: Shape, layers: frozenset[int], n_head: tuple[int, ...], head_k: tuple[int, ...]
) -> RecurrentSpec | None:
    if not layers:
        return None
    n_embd_r, n_embd_s = _state_sizes(shape, n_head[0], head_k[0])
    return RecurrentSpec(layers=tuple(sorted(layers)), n_embd_r=n_embd_r, n_embd_s=n_embd_s)


def _state_sizes(shape: Shape, n_head: int, head_k: int) -> tuple[int, int]:
    """``llama_hparams::n_embd_r`` and ``n_embd_s``, in the same order of cases."""
    n_embd = shape.n_embd
    d_conv = shape.integer("ssm.conv_kernel")
    d_inner = shape.integer("ssm.inner_size")
    d_state = shape.integer("ssm.state_size")
    if wkv_head_size := shape.integer("wkv.head_size"):
        return shape.integer("token_shift_count", 2) * n_embd, n_embd * wkv_head_size
    if l_cache := shape.integer("shortconv.l_cache"):
        return n_embd * (l_cache - 1), d_state * d_inner
    if kda := shape.integer("kda.head_dim"):
        return 3 * (d_conv - 1 if d_conv else 3) * n_head * kda, kda * kda * n_head
    if shape.arch == "minimax-01":
        return 0, head_k * head_k * n_head
    n_conv = max(0, d_conv - 1) * (d_inner + 2 * shape.integer("ssm.group_count") * d_state)
    return n_conv, d_state * d_inner
