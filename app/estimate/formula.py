"""The instant estimate: every part of every device from the file's header alone."""

from typing import NamedTuple

from app.domain.memory import DeviceMemory
from app.domain.model import ModelSpec
from app.domain.settings import Settings, SplitMode, Switch
from app.estimate.compute import ERROR_FRAC, compute_buffers
from app.estimate.divided import is_divided, share, share_weights, with_shares
from app.estimate.kv import LayerCache, is_swa, layer_caches
from app.estimate.overridden import (
    InRam,
    Overridden,
    guest_blocks,
    move,
    overridden_tensors,
    parts_in_ram,
    repacked_change,
)
from app.estimate.profile import (
    DEFAULT_PROFILE,
    EngineProfile,
    FormulaDevice,
    context_shape,
    with_split,
)
from app.estimate.weights import (
    HOST,
    HOST_ALIGNMENT,
    WeightTable,
    layer_devices,
    place_weights,
    repacked_blocks,
    weight_table,
)
from app.estimate.widths import layer_dims

HOST_NAME = "host"
_F32 = 4
# enough for every layer count of a model, and for every count of its blocks with experts in RAM
_MOST_PLACEMENTS = 256


class _Placed(NamedTuple):
    """One placement: device of each block, weights per device and, last, in RAM, bytes.

    ``guests`` are blocks with a matrix on a device that is not theirs.
    """

    devices: tuple[FormulaDevice, ...]
    places: tuple[int, ...]
    weights: tuple[int, ...]
    guests: frozenset[tuple[int, int]]
    repacked_bytes: int


class Formula:
    """Sums the tensor table once; then each configuration takes well under a millisecond."""

    def __init__(
        self,
        spec: ModelSpec,
        devices: tuple[FormulaDevice, ...],
        profile: EngineProfile = DEFAULT_PROFILE,
    ) -> None:
        """Prepare for ``spec`` on ``devices`` (the order decides which blocks each gets)."""
        self.spec = spec
        self.devices = devices
        self.profile = profile
        self._dims = layer_dims(spec)
        self._host = weight_table(spec, HOST_ALIGNMENT)
        self._repacked = repacked_blocks(spec)
        self._rope_layers = tuple(
            spec.arch != "gemma4" or not is_swa(spec, i) for i in range(spec.n_layer)
        )
        kinds = {(d.alignment, d.row_pad) for d in devices}
        tables = {kind: weight_table(spec, *kind) for kind in kinds}
        self._by_name = {d.name: (d, tables[d.alignment, d.row_pad]) for d in devices}
        self._every_device = _every_device(devices)
        self._placements: dict[tuple[object, ...], _Placed] = {}
        self._rules: tuple[str, tuple[Overridden, ...], InRam] = ("", (), InRam())

    @property
    def known(self) -> bool:
        """Whether cache and compute are covered; otherwise only weights are given."""
        return self.spec.formula_known

    def places(self, settings: Settings) -> tuple[int, ...]:
        """Return the device index of each block and, last, of the output layer."""
        return layer_devices(self.spec.n_layer, settings.n_gpu_layers, self._used(settings)[0])

    def used(self, settings: Settings) -> tuple[FormulaDevice, ...]:
        """Return the devices that ``settings`` use, in order: named ones, or llama.cpp's choice."""
        return self._used(settings)[0]

    def estimate(self, settings: Settings) -> tuple[DeviceMemory, ...]:
        """Return the need per device (``host`` last), without driver parts and verdicts."""
        placed = self._placed(settings)
        names = [*(d.name for d in placed.devices), HOST_NAME]
        if not self.known:
            return tuple(
                DeviceMemory(device=name, weights_bytes=w, total_bytes=w)
                for name, w in zip(names, placed.weights, strict=True)
            )
        return self._complete(settings, placed, names)

    def error_bytes(self, device: DeviceMemory) -> int:
        """Return by how much the total of ``device`` may be off, bytes."""
        return int((device.compute_bytes or 0) * ERROR_FRAC)

    def repacked_bytes(self, settings: Settings) -> int:
        """Return what the CPU copies of its mapped weights, bytes; 0 with pinned weights."""
        return self._placed(settings).repacked_bytes

    def _placed(self, settings: Settings) -> _Placed:
        """Return where the weights are; kept, for questions about anything else."""
        key = (
            settings.n_gpu_layers,
            settings.n_cpu_moe,
            settings.devices,
            settings.split_mode,
            settings.tensor_split,
            settings.override_tensor,
        )
        placed = self._placements.get(key)
        if placed is None:
            if len(self._placements) >= _MOST_PLACEMENTS:
                self._placements.clear()
            placed = self._placements[key] = self._place(settings)
        return placed

    def _place(self, settings: Settings) -> _Placed:
        devices, tables = self._used(settings)
        divided = is_divided(settings, devices)
        one = devices[:1] if divided else devices
        places = layer_devices(self.spec.n_layer, settings.n_gpu_layers, one)
        weights = place_weights(
            tables,
            self._host,
            places,
            settings,
            self.profile,
            has_host_buffer=bool(devices and devices[0].has_host_buffer),
            rope_layers=self._rope_layers,
        )
        if settings.override_tensor:
            weights = self._moved(settings, weights, places, devices)
        if divided:
            weights = share_weights(self.spec, weights, places, devices, settings)
        repacked = self._repacked_at(settings, places, devices)
        guests = guest_blocks(self._overridden(settings), places, devices)
        return _Placed(devices, places, tuple(weights), guests, repacked)

    def _repacked_at(
        self, settings: Settings, places: tuple[int, ...], devices: tuple[FormulaDevice, ...]
    ) -> int:
        if not self.profile.repack or (devices and devices[0].has_host_buffer):
            return 0
        total = 0
        for layer, place in enumerate(places[:-1]):
            n_bytes, n_expert_bytes = self._repacked[layer]
            if place == HOST:
                total += n_bytes
            elif layer < settings.n_cpu_moe:
                total += n_expert_bytes
        return total + repacked_change(self._overridden(settings), places, settings, devices)

    def _overridden(self, settings: Settings) -> tuple[Overridden, ...]:
        """Return the tensors that the user's rules place; looked up once per set of rules."""
        text = settings.override_tensor
        if self._rules[0] != text:
            found = overridden_tensors(self.spec, text)
            self._rules = text, found, parts_in_ram(self.spec, found)
        return self._rules[1]

    def _moved(
        self,
        settings: Settings,
        weights: list[int],
        places: tuple[int, ...],
        devices: tuple[FormulaDevice, ...],
    ) -> list[int]:
        host = self._host
        has_host_buffer = bool(devices and devices[0].has_host_buffer)
        repacks = host.tied_repacks and self.profile.repack and not has_host_buffer
        is_copied = host.tied and (places[-1] != HOST or host.tied_always or repacks)
        entries = self._overridden(settings)
        in_ram = any(e.device is None for e in entries if e.tensor.name == "token_embd.weight")
        return move(
            entries,
            weights,
            places,
            settings,
            devices,
            rope_at=tuple({p for p, uses in zip(places, self._rope_layers, strict=False) if uses}),
            tied_at=places[-1] if is_copied else None,
            is_twice=host.tied_always or (in_ram and repacks),
        )

    def _used(
        self, settings: Settings
    ) -> tuple[tuple[FormulaDevice, ...], tuple[WeightTable, ...]]:
        names = settings.devices
        if not names:
            # without layers and names the engine opens no device at all
            names = self._every_device if settings.n_gpu_layers > 0 else ()
        used = [self._by_name[name] for name in names if name in self._by_name]
        if settings.split_mode is SplitMode.NONE:
            used = used[:1]
        devices = with_split(tuple(d for d, _ in used), settings.tensor_split)
        return with_shares(settings, devices), tuple(t for _, t in used)

    def _complete(
        self,
        settings: Settings,
        placed: _Placed,
        names: list[str],
    ) -> tuple[DeviceMemory, ...]:
        devices, places, weights, guests, _ = placed
        caches = layer_caches(self.spec, settings, self.profile)
        homes = places if settings.offload_kqv is Switch.ON else (HOST,) * len(places)
        kv, states = _cache_sums(caches, homes, len(devices))
        self._overridden(settings)
        in_ram = self._rules[2]._replace(guests=guests)
        may_offload = settings.op_offload is Switch.ON
        computing = devices[:1] if is_divided(settings, devices) else devices
        *on_devices, on_host = compute_buffers(
            self.spec,
            self._dims,
            settings,
            profile=self.profile,
            places=places,
            host=self._host,
            offloads=tuple(d.has_op_offload and may_offload for d in computing),
            caches=caches,
            in_ram=in_ram,
        )
        rest = len(devices) - len(computing)
        compute = [*on_devices, *[0] * rest, on_host]
        if rest and settings.split_mode is SplitMode.TENSOR:
            compute = [*on_devices * len(devices), on_host]
            kv = [*share(kv[0], devices), kv[-1]]
            states = [*share(states[0], devices), states[-1]]
        shape = context_shape(settings, self.profile)
        parts = []
        for i, name in enumerate(names):
            output = self.spec.n_vocab * shape.n_seq * _F32 if name == HOST_NAME else 0
            parts.append(
                DeviceMemory(
                    device=name,
                    weights_bytes=weights[i],
                    kv_cache_bytes=kv[i],
                    recurrent_state_bytes=states[i],
                    compute_bytes=compute[i],
                    output_bytes=output,
                    total_bytes=weights[i] + kv[i] + states[i] + compute[i] + output,
                )
            )
        return tuple(parts)


def _cache_sums(
    caches: tuple[LayerCache, ...], homes: tuple[int, ...], n_devices: int
) -> tuple[list[int], list[int]]:
    kv = [0] * (n_devices + 1)
    states = [0] * (n_devices + 1)
    for cache, home in zip(caches, homes, strict=False):
        kv[home] += cache.kv_bytes
        states[home] += cache.state_bytes
    return kv, states


def _every_device(devices: tuple[FormulaDevice, ...]) -> tuple[str, ...]:
    """Return what llama.cpp uses unless told: remote first, integrated only without others."""
    remote = [d.name for d in devices if d.is_remote]
    local = [d.name for d in devices if not (d.is_remote or d.is_integrated)]
    integrated = [d.name for d in devices if d.is_integrated]
    return (*remote, *(local or integrated))
