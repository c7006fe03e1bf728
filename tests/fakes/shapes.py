"""Model specifications from published shapes, without files: for the memory formulas."""

from app.domain.model import ModelSpec, RecurrentSpec, TensorInfo

# bytes per block, elements per block
_TYPES = {"f32": (4, 1), "q8_0": (34, 32), "q4_K": (144, 256), "q6_K": (210, 256)}
_TYPES["mxfp4"] = (17, 32)


def tensor(name: str, shape: tuple[int, ...], kind: str) -> TensorInfo:
    """One entry of a tensor table."""
    block_bytes, block = _TYPES[kind]
    n_elements = 1
    for dim in shape:
        n_elements *= dim
    return TensorInfo(name=name, type=kind, shape=shape, n_bytes=n_elements // block * block_bytes)


def a_spec(
    *,
    n_layer: int = 4,
    n_embd: int = 256,
    n_vocab: int = 1024,
    n_head: int | tuple[int, ...] = 4,
    n_head_kv: int | tuple[int, ...] = 2,
    k_dim: int | tuple[int, ...] = 64,
    v_dim: int | tuple[int, ...] | None = None,
    tensors: tuple[TensorInfo, ...] = (),
    arch: str = "llama",
    n_swa: int = 0,
    swa_layers: tuple[bool, ...] = (),
    recurrent: RecurrentSpec | None = None,
    mla: tuple[int, int] | None = None,
    kv_shared_from: int | None = None,
    n_expert: int = 0,
    n_expert_used: int = 0,
    n_ctx_train: int | None = 131072,
    formula_known: bool = True,
) -> ModelSpec:
    """A model of the given shape; numbers stand for all layers alike."""

    def per_layer(value: int | tuple[int, ...]) -> tuple[int, ...]:
        return (value,) * n_layer if isinstance(value, int) else value

    n_bytes = sum(t.n_bytes for t in tensors)
    return ModelSpec(
        path="/models/shape.gguf",
        files=("/models/shape.gguf",),
        fingerprint="5ha9e",
        arch=arch,
        name="shape",
        n_layer=n_layer,
        n_embd=n_embd,
        n_vocab=n_vocab,
        n_ctx_train=n_ctx_train,
        n_head=per_layer(n_head),
        n_head_kv=per_layer(n_head_kv),
        n_embd_head_k=per_layer(k_dim),
        n_embd_head_v=per_layer(k_dim if v_dim is None else v_dim),
        n_swa=n_swa,
        swa_layers=swa_layers,
        kv_shared_from=kv_shared_from,
        mla_kv_lora_rank=mla[0] if mla else None,
        mla_rope_dim=mla[1] if mla else None,
        n_expert=n_expert,
        n_expert_used=n_expert_used,
        recurrent=recurrent,
        file_bytes=n_bytes,
        weights_bytes=n_bytes,
        tensors=tensors,
        formula_known=formula_known,
    )


def dense_tensors(
    *,
    n_layer: int,
    n_embd: int,
    n_vocab: int,
    n_ff: int,
    n_q: int,
    n_kv: int,
    kind: str = "q8_0",
    tied: bool = False,
    embedding: str | None = None,
) -> tuple[TensorInfo, ...]:
    """The table of a llama-like dense model."""
    table = [
        tensor("token_embd.weight", (n_embd, n_vocab), embedding or kind),
        tensor("output_norm.weight", (n_embd,), "f32"),
    ]
    if not tied:
        table.append(tensor("output.weight", (n_embd, n_vocab), kind))
    for i in range(n_layer):
        table += _block(i, n_embd, n_q, n_kv, kind)
        for name, shape in (
            ("gate", (n_embd, n_ff)),
            ("up", (n_embd, n_ff)),
            ("down", (n_ff, n_embd)),
        ):
            table.append(tensor(f"blk.{i}.ffn_{name}.weight", shape, kind))
    return tuple(table)


def moe_tensors(
    *,
    n_layer: int,
    n_embd: int,
    n_vocab: int,
    n_ff_exp: int,
    n_expert: int,
    n_q: int,
    n_kv: int,
    kind: str = "q8_0",
) -> tuple[TensorInfo, ...]:
    """The table of a qwen3moe-like model (norms of Q and K included)."""
    table = [
        tensor("token_embd.weight", (n_embd, n_vocab), kind),
        tensor("output_norm.weight", (n_embd,), "f32"),
        tensor("output.weight", (n_embd, n_vocab), kind),
    ]
    for i in range(n_layer):
        p = f"blk.{i}."
        table += _block(i, n_embd, n_q, n_kv, kind)
        table.append(tensor(p + "attn_q_norm.weight", (128,), "f32"))
        table.append(tensor(p + "attn_k_norm.weight", (128,), "f32"))
        table.append(tensor(p + "ffn_gate_inp.weight", (n_embd, n_expert), "f32"))
        table.append(tensor(p + "ffn_gate_exps.weight", (n_embd, n_ff_exp, n_expert), kind))
        table.append(tensor(p + "ffn_up_exps.weight", (n_embd, n_ff_exp, n_expert), kind))
        table.append(tensor(p + "ffn_down_exps.weight", (n_ff_exp, n_embd, n_expert), kind))
    return tuple(table)


def _block(i: int, n_embd: int, n_q: int, n_kv: int, kind: str) -> list[TensorInfo]:
    p = f"blk.{i}."
    return [
        tensor(p + "attn_norm.weight", (n_embd,), "f32"),
        tensor(p + "ffn_norm.weight", (n_embd,), "f32"),
        tensor(p + "attn_q.weight", (n_embd, n_q), kind),
        tensor(p + "attn_k.weight", (n_embd, n_kv), kind),
        tensor(p + "attn_v.weight", (n_embd, n_kv), kind),
        tensor(p + "attn_output.weight", (n_q, n_embd), kind),
    ]
