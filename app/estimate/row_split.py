"""Row split: every matrix is divided by rows over the devices, all else stays on the first.

llama.cpp's ``LLAMA_SPLIT_MODE_ROW``; cache, compute buffers and vectors are the first device's.
Experts are no plain matrices and are not divided.
"""

from app.domain.model import ModelSpec
from app.estimate.profile import FormulaDevice
from app.estimate.weights import HOST, is_divisible


def share_rows(
    spec: ModelSpec,
    weights: list[int],
    places: tuple[int, ...],
    devices: tuple[FormulaDevice, ...],
) -> list[int]:
    """Return weights per device and, last, in RAM, with the first device's matrices divided.

    Args:
        spec: The model.
        weights: Bytes with everything offloaded on the first device.
        places: Device of each block and of the output layer, likewise.
        devices: The devices that share.
    """
    divided = sum(
        tensor.n_bytes
        for tensor in spec.tensors
        if (layer := is_divisible(tensor, spec.n_layer)) is not None and places[layer] != HOST
    )
    total = sum(d.split for d in devices)
    shares = [d.split / total if total else 1 / len(devices) for d in devices]
    kept = weights[0] - divided
    parts = [round(divided * share) for share in shares]
    return [kept + parts[0], *parts[1:], weights[-1]]
