"""What a GGUF file says about a model: everything memory, search and chat need to know."""

import math

from app.domain.record import Record


class TensorInfo(Record, frozen=True, kw_only=True):
    """One entry of the tensor table.

    Attributes:
        name: GGUF tensor name, e.g. ``blk.3.attn_q.weight``.
        type: ggml type name, e.g. ``q4_K``.
        shape: Elements per dimension, ggml order (innermost first).
        n_bytes: Size in the file, bytes.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    n_bytes: int


class RecurrentSpec(Record, frozen=True, kw_only=True):
    """Fixed-size state of recurrent layers (Mamba, RWKV, gated delta net).

    Attributes:
        layers: Indices of the layers that hold such a state.
        n_embd_r: Convolution (or token shift) state per layer and sequence, f32 elements.
        n_embd_s: Recurrent state per layer and sequence, f32 elements.
    """

    layers: tuple[int, ...]
    n_embd_r: int
    n_embd_s: int


class ModelSpec(Record, frozen=True, kw_only=True):
    """A model as its GGUF describes it. Absent metadata is ``None``.

    Per-layer tuples have ``n_layer`` entries.

    Attributes:
        path: First (or only) file.
        files: Every shard, in order.
        fingerprint: Hash of the content (not of the path): header, size and samples of data.
        arch: ``general.architecture``.
        name: ``general.name`` or the file's stem.
        n_layer: Repeating blocks (``<arch>.block_count``).
        n_embd: Embedding length.
        n_vocab: Words in the vocabulary.
        n_ctx_train: Context length the model was trained for, tokens.
        n_head: Attention heads per layer.
        n_head_kv: KV heads per layer; 0 = the layer has no KV cache.
        n_embd_head_k: Elements of one K head (per layer).
        n_embd_head_v: Elements of one V head (per layer).
        n_swa: Sliding window, tokens; 0 = none.
        swa_layers: Per layer, whether it uses the sliding window.
        kv_shared_from: First layer that re-uses an earlier layer's cache, if any.
        mla_kv_lora_rank: Latent cache width when the file carries MLA tensors (K only), if any.
        mla_rope_dim: Rotary part added to the latent width.
        n_expert: Experts per MoE layer, 0 for dense models.
        n_expert_used: Experts used per token.
        recurrent: Recurrent state, if any.
        chat_template: The file's jinja template, if any.
        file_bytes: Size of all shards.
        weights_bytes: Sum of tensor sizes.
        tensors: Tensor table over all shards.
        kind: ``text``, ``embedding``, ``projector``, ``adapter``, ``vocabulary``, ``draft`` or
            ``speech``.
        split_index: Index of this file among the shards, from 0.
        split_count: Number of shards; 1 = a single file.
        ftype: File type name such as ``Q4_K_M``, when stated.
        formula_known: Whether the KV and state formulas cover this architecture.
        problems: Sentences about what is odd but does not prevent use.
    """

    path: str
    files: tuple[str, ...]
    fingerprint: str
    arch: str
    name: str
    n_layer: int
    n_embd: int
    n_vocab: int
    n_ctx_train: int | None
    n_head: tuple[int, ...]
    n_head_kv: tuple[int, ...]
    n_embd_head_k: tuple[int, ...]
    n_embd_head_v: tuple[int, ...]
    n_swa: int = 0
    swa_layers: tuple[bool, ...] = ()
    kv_shared_from: int | None = None
    mla_kv_lora_rank: int | None = None
    mla_rope_dim: int | None = None
    n_expert: int = 0
    n_expert_used: int = 0
    recurrent: RecurrentSpec | None = None
    chat_template: str | None = None
    file_bytes: int
    weights_bytes: int
    tensors: tuple[TensorInfo, ...]
    kind: str = "text"
    split_index: int = 0
    split_count: int = 1
    ftype: str | None = None
    formula_known: bool = True
    problems: tuple[str, ...] = ()

    @property
    def bits_per_weight(self) -> float | None:
        """Average size of a weight, bits."""
        n_weights = sum(math.prod(tensor.shape) for tensor in self.tensors)
        return round(8 * self.weights_bytes / n_weights, 2) if n_weights else None

    @property
    def expert_bytes(self) -> int:
        """Size of all experts' tensors."""
        return sum(tensor.n_bytes for tensor in self.tensors if "exps." in tensor.name)

    @property
    def max_gpu_layers(self) -> int:
        """Everything on the GPU: the blocks and the output layer."""
        return self.n_layer + 1
