"""What the formulas must know of the engine and of its devices, besides model and settings."""

import msgspec

from app.domain.record import Record
from app.domain.settings import Settings

CELL_PAD = 256


class EngineProfile(Record, frozen=True, kw_only=True):
    """How contexts are created; the defaults are what our worker does.

    Attributes:
        swa_full: Give sliding-window layers the full context (engines without a window cache).
        kv_unified: One pool of cells for all slots instead of one per slot.
        n_outputs_max: Rows of logits to reserve; ``None`` = one per slot (llama.cpp's own
            default is ``n_batch``).
        n_rs_seq: Extra recurrent states kept per slot for rollback.
        repack: Whether the CPU keeps weights in a layout of its own (x86 with AVX2).
    """

    swa_full: bool = False
    kv_unified: bool = False
    n_outputs_max: int | None = None
    n_rs_seq: int = 0
    repack: bool = True


DEFAULT_PROFILE = EngineProfile()


class FormulaDevice(Record, frozen=True, kw_only=True):
    """A device layers may go to.

    Attributes:
        name: Engine name.
        split: Its share when layers are split; by default llama.cpp takes free memory.
        has_host_buffer: Whether the backend pins RAM for the CPU's weights (not over RPC).
        has_op_offload: Whether it computes big batches for layers that lie in RAM.
        alignment: Bytes a tensor's start is aligned to.
        row_pad: Elements quantised rows are padded to, 1 = none (CUDA: 512).
        is_remote: Whether it is another machine's; those come first unless devices are named.
        is_integrated: Whether it shares RAM; unused beside others unless it is named.
    """

    name: str
    split: float
    has_host_buffer: bool = True
    has_op_offload: bool = True
    alignment: int = 128
    row_pad: int = 1
    is_remote: bool = False
    is_integrated: bool = False


class ContextShape(Record, frozen=True, kw_only=True):
    """Sizes as llama.cpp rounds them (``llama_context``).

    Attributes:
        n_cells: KV cells per stream.
        n_streams: Separate caches: one per slot, or 1 when unified.
        n_seq: Slots, at least 1.
        n_ubatch: Physical batch, never above batch and context.
        n_outputs: Rows of logits of a full batch.
    """

    n_cells: int
    n_streams: int
    n_seq: int
    n_ubatch: int
    n_outputs: int


def context_shape(settings: Settings, profile: EngineProfile) -> ContextShape:
    """Return the sizes llama.cpp creates a context of ``settings`` with."""
    n_seq = max(1, settings.n_seq_max)
    n_batch = min(settings.n_ctx, settings.n_batch)
    n_ubatch = min(n_batch, settings.n_ubatch)
    n_streams = 1 if profile.kv_unified else n_seq
    n_cells = pad(pad(settings.n_ctx, CELL_PAD) // n_streams, CELL_PAD)
    wanted = n_seq if profile.n_outputs_max is None else profile.n_outputs_max
    return ContextShape(
        n_cells=n_cells,
        n_streams=n_streams,
        n_seq=n_seq,
        n_ubatch=n_ubatch,
        n_outputs=min(n_ubatch, wanted),
    )


def swa_cells(shape: ContextShape, n_swa: int, profile: EngineProfile) -> int:
    """Return the cells per stream of a sliding-window layer (``llama_kv_cache_iswa``)."""
    if profile.swa_full:
        return shape.n_cells
    window = n_swa * (shape.n_seq if profile.kv_unified else 1) + shape.n_ubatch
    return pad(min(shape.n_cells, window), CELL_PAD)


def pad(value: int, step: int) -> int:
    """Return ``value`` rounded up to a multiple of ``step``."""
    return -(-value // step) * step


def with_split(devices: tuple[FormulaDevice, ...], tensor_split: str) -> tuple[FormulaDevice, ...]:
    """Return ``devices`` with the shares of ``tensor_split``; devices it does not name get none.

    Without shares, or with zeros only, llama.cpp goes by free memory.
    """
    shares = [float(n) for n in tensor_split.split(",")] if tensor_split else []
    shares = (shares + [0.0] * len(devices))[: len(devices)]
    if not any(shares):
        return devices
    return tuple(
        msgspec.structs.replace(device, split=share)
        for device, share in zip(devices, shares, strict=True)
    )
