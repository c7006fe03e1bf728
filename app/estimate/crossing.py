"""What batches in flight between devices keep alive beside the residual stream."""

from app.domain.model import ModelSpec
from app.estimate.kv import has_kv
from app.estimate.widths import LayerDims


def in_flight(
    spec: ModelSpec, dims: tuple[LayerDims, ...], layers: list[int], n_copies: int
) -> int:
    """Return what crosses a border between two recurrent blocks of a hybrid, elements per token.

    Their states are collected early, so that the convolution's input crosses, too: once per batch
    in flight where it leaves, twice where it arrives, as the residual stream does. With attention
    on either side the masks lie between, and short convolutions have no state that is scanned.

    Args:
        spec: The model.
        dims: Result of ``layer_dims``.
        layers: The blocks of one device, in order.
        n_copies: Batches in flight.
    """
    recurrent = spec.recurrent
    if n_copies == 1 or not layers or recurrent is None or not recurrent.n_embd_s:
        return 0
    if not any(spec.n_head):
        return 0  # without attention at all the scans themselves overlap

    def crosses(before: int) -> bool:
        pair = (before, before + 1)
        return 0 <= before < spec.n_layer - 1 and all(
            dims[i].scan and not has_kv(spec, i) for i in pair
        )

    wide = max(d.conv for d in dims) * n_copies
    return (2 * crosses(layers[0] - 1) + crosses(layers[-1])) * wide
