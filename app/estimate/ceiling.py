"""Speed ceilings: what memory bandwidth allows decode at most (estimated, never measured).

To generate one token a device reads every weight it computes with and the KV cache so far. Of
the experts only the used ones count.
"""

from app.domain.model import ModelSpec
from app.domain.settings import Settings, SplitMode, Switch
from app.estimate.divided import is_divided
from app.estimate.kv import is_swa, layer_caches
from app.estimate.overridden import overridden_tensors
from app.estimate.profile import (
    DEFAULT_PROFILE,
    EngineProfile,
    FormulaDevice,
    context_shape,
    swa_cells,
    with_split,
)
from app.estimate.weights import (
    HOST,
    HOST_ALIGNMENT,
    TensorGroup,
    is_expert,
    layer_devices,
    weight_table,
)

HOST_NAME = "host"


def token_bytes(
    spec: ModelSpec,
    settings: Settings,
    devices: tuple[FormulaDevice, ...],
    depth: int = 0,
    profile: EngineProfile = DEFAULT_PROFILE,
) -> dict[str, int]:
    """Return the bytes each device (``host`` = CPU) reads for one token.

    Empty where devices share each layer: they read at the same time, so times do not add up.

    Args:
        spec: The model.
        settings: Configuration; only placement, cache types and context matter.
        devices: Devices layers may go to.
        depth: Tokens already in the cache.
        profile: Engine switches.
    """
    table = weight_table(spec, HOST_ALIGNMENT)
    if is_divided(settings, devices):
        return {}
    split = with_split(devices, settings.tensor_split)
    if settings.split_mode is SplitMode.NONE:
        split = split[:1]
    places = layer_devices(spec.n_layer, settings.n_gpu_layers, split)
    in_ram = settings.offload_kqv is Switch.OFF
    share = spec.n_expert_used / spec.n_expert if spec.n_expert else 1.0
    sums = [0.0] * (len(devices) + 1)
    for layer, (block, place) in enumerate(zip(table.blocks, places, strict=False)):
        expert_home = HOST if layer < settings.n_cpu_moe else place
        sums[place] += block.n_bytes - block.expert_bytes
        sums[expert_home] += block.expert_bytes * share
    for entry in overridden_tensors(spec, settings.override_tensor):
        if entry.group in (TensorGroup.BLOCK, TensorGroup.OUTPUT):
            read = entry.tensor.n_bytes * (share if is_expert(entry.tensor) else 1.0)
            sums[entry.origins(places, settings)[0]] -= read
            sums[entry.home(split)] += read
    for layer, n_bytes in enumerate(_cache_read(spec, settings, depth, profile)):
        sums[HOST if in_ram else places[layer]] += n_bytes
    sums[places[-1]] += table.outputs + table.tied
    names = [*(d.name for d in devices), HOST_NAME]
    return {name: round(n) for name, n in zip(names, sums, strict=True)}


def ceiling_tok_s(read_bytes: dict[str, int], bandwidth_gb_s: dict[str, float]) -> float | None:
    """Return the decode speed if reading were all there is, tokens per second.

    Devices work one after the other, so their times add up. ``None`` where a device that reads
    something has no known bandwidth.

    Args:
        read_bytes: Result of ``token_bytes``.
        bandwidth_gb_s: Bandwidth per device, 10⁹ bytes per second.
    """
    seconds = 0.0
    for name, n_bytes in read_bytes.items():
        if n_bytes == 0:
            continue
        bandwidth = bandwidth_gb_s.get(name)
        if not bandwidth:
            return None
        seconds += n_bytes / (bandwidth * 1e9)
    return 1 / seconds if seconds else None


def _cache_read(
    spec: ModelSpec, settings: Settings, depth: int, profile: EngineProfile
) -> list[int]:
    if not spec.formula_known:
        return [0] * spec.n_layer
    shape = context_shape(settings, profile)
    result = []
    for layer, cache in enumerate(layer_caches(spec, settings, profile)):
        window = min(depth, spec.n_swa) if is_swa(spec, layer) else depth
        cells = swa_cells(shape, spec.n_swa, profile) if is_swa(spec, layer) else shape.n_cells
        filled = min(window, cells) / cells / shape.n_streams
        read = cache.kv_bytes * filled + cache.state_bytes / shape.n_seq
        result.append(round(read))
    return result
