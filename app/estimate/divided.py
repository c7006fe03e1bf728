"""Weights and cache that several devices divide layer by layer: split modes row, tensor.

``row`` (llama-model.cpp, ``make_gpu_buft_list``): plain matrices by rows; cache, compute buffers,
vectors and experts are the first device's. ``tensor`` (``llama_meta_device_get_split_state``):
matrices, experts and cache; what is not divided, and all compute buffers, lie on every device.
"""

import msgspec

from app.domain.model import ModelSpec
from app.domain.overrides import override_for, read_overrides
from app.domain.settings import Settings, SplitMode
from app.estimate.profile import FormulaDevice
from app.estimate.weights import HOST, is_expert, matrix_place


def is_divided(settings: Settings, devices: tuple[FormulaDevice, ...]) -> bool:
    """Whether ``devices`` share each layer, so that all else goes by the first of them."""
    return settings.is_divided and len(devices) > 1


def with_shares(
    settings: Settings, devices: tuple[FormulaDevice, ...]
) -> tuple[FormulaDevice, ...]:
    """Return ``devices`` as split mode ``tensor`` weighs them: evenly unless told."""
    if settings.split_mode is not SplitMode.TENSOR or settings.tensor_split:
        return devices
    return tuple(msgspec.structs.replace(device, split=1.0) for device in devices)


def share_weights(
    spec: ModelSpec,
    weights: list[int],
    places: tuple[int, ...],
    devices: tuple[FormulaDevice, ...],
    settings: Settings,
) -> list[int]:
    """Return weights per device and, last, in RAM, with the first device's matrices divided.

    Args:
        spec: The model.
        weights: Bytes with everything offloaded on the first device.
        places: Device of each block and of the output layer, likewise.
        devices: The devices that share.
        settings: Split mode, and tensors that lie elsewhere.
    """
    by_tensor = settings.split_mode is SplitMode.TENSOR
    rules = read_overrides(settings.override_tensor)
    divided = 0
    for tensor in spec.tensors:
        layer = matrix_place(tensor, spec.n_layer)
        if layer is None or places[layer] == HOST or override_for(rules, tensor.name):
            continue
        if not is_expert(tensor) or (by_tensor and layer >= settings.n_cpu_moe):
            divided += tensor.n_bytes
    parts = share(divided, devices)
    kept = weights[0] - divided
    if by_tensor:
        return [*(kept + part for part in parts), weights[-1]]
    return [kept + parts[0], *parts[1:], weights[-1]]


def share(n_bytes: int, devices: tuple[FormulaDevice, ...]) -> list[int]:
    """Return ``n_bytes`` divided by the devices' shares; evenly where there are none."""
    total = sum(d.split for d in devices)
    shares = [d.split / total if total else 1 / len(devices) for d in devices]
    return [round(n_bytes * share) for share in shares]
