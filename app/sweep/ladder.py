"""Where layers go: the rungs from CPU only to everything on the GPU, and which of them fit.

A dense model has one rung per layer. A model with experts also has the better path (1.2–1.7 ×
decode at equal memory): all layers on the GPU, the expert tensors of the first N in RAM.
"""

from collections.abc import Callable

import msgspec

from app.domain.memory import DeviceMemory, MemoryEstimate, Verdict
from app.domain.overrides import override_for, read_overrides
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import SearchSpace, SweepRequest
from app.domain.units import MIB

AUTO_FIT_MARGIN_BYTES = 1024 * MIB  # llama.cpp's own default of --fit

Fits = Callable[[Settings], MemoryEstimate]
HOST = "host"
_EXPERTS = ("up", "down", "gate", "gate_up")


class Rung(Record, frozen=True, kw_only=True):
    """One placement."""

    n_gpu_layers: int
    n_cpu_moe: int = 0

    def of(self, settings: Settings) -> Settings:
        """Return ``settings`` with this placement."""
        return msgspec.structs.replace(
            settings, n_gpu_layers=self.n_gpu_layers, n_cpu_moe=self.n_cpu_moe
        )


def rung_of(settings: Settings) -> Rung:
    """Return the placement in ``settings``."""
    return Rung(n_gpu_layers=settings.n_gpu_layers, n_cpu_moe=settings.n_cpu_moe)


def layer_ladder(request: SweepRequest, space: SearchSpace) -> tuple[Rung, ...]:
    """Return the plain placements, fewest layers on the GPU first."""
    everything = space.model.n_layer + 1
    pinned = request.pinned.get("n_gpu_layers")
    moe = int(request.pinned.get("n_cpu_moe", 0))
    layers = range(everything + 1) if pinned is None else [min(int(pinned), everything)]
    return tuple(Rung(n_gpu_layers=n, n_cpu_moe=moe) for n in layers)


def expert_ladder(request: SweepRequest, space: SearchSpace) -> tuple[Rung, ...]:
    """Return the placements with experts in RAM, least GPU memory first; empty if none.

    Below "all layers, no experts" come fewer layers without any experts.
    """
    blocks = space.model.n_layer
    if (
        not space.model.n_expert
        or "n_cpu_moe" in request.pinned
        or _experts_pinned(request, blocks)
    ):
        return ()
    if "n_gpu_layers" in request.pinned:
        n = min(int(request.pinned["n_gpu_layers"]), blocks + 1)
        return tuple(Rung(n_gpu_layers=n, n_cpu_moe=k) for k in range(blocks, -1, -1)) if n else ()
    few = [Rung(n_gpu_layers=n, n_cpu_moe=blocks) for n in range(1, blocks + 1)]
    every = [Rung(n_gpu_layers=blocks + 1, n_cpu_moe=k) for k in range(blocks, -1, -1)]
    return (*few, *every)


def _experts_pinned(request: SweepRequest, n_layer: int) -> bool:
    """Whether the user's own rules say where experts lie; they decide before ``n_cpu_moe``."""
    rules = read_overrides(str(request.pinned.get("override_tensor", "")))
    names = (f"blk.{i}.ffn_{kind}_exps.weight" for i in range(n_layer) for kind in _EXPERTS)
    return any(override_for(rules, name) for name in names)


class Bounds:
    """Asks the dry run what fits, as seldom as it can."""

    def __init__(self, fits: Fits, headroom_bytes: int | None) -> None:
        """Use ``fits`` for every answer; ``headroom_bytes`` replaces the devices' own rule."""
        self._fits = fits
        self._headroom_bytes = headroom_bytes
        self.ceiling: dict[
            str, float
        ] = {}  # bytes per device that trials proved, where they had to

    def need(self, settings: Settings) -> MemoryEstimate:
        """Return the dry run's answer."""
        return self._fits(settings)

    def ok(self, settings: Settings) -> bool:
        """Whether ``settings`` fits with the headroom left free on every device."""
        need = self._fits(settings)
        if need.note is not None or need.verdict is Verdict.DOES_NOT_FIT:
            return False
        return all(self._leaves_headroom(d) for d in need.devices if d.device != HOST)

    def leaves_room(self, settings: Settings) -> bool:
        """Whether the headroom stays free on every device, whatever trials proved since."""
        need = self._fits(settings)
        return all(self._free_headroom(d) for d in need.devices if d.device != HOST)

    def refused(self, settings: Settings) -> bool:
        """Whether the engine would not even plan ``settings``."""
        return self._fits(settings).note is not None

    def largest(self, ladder: tuple[Rung, ...], base: Settings) -> int | None:
        """Return the index of the largest rung that fits with the knobs of ``base``."""
        return self._largest(ladder, base, self.ok)

    def auto_fit(self, ladder: tuple[Rung, ...], base: Settings) -> int | None:
        """Return the rung llama.cpp's own ``--fit`` would take: 1,024 MiB stay free."""

        def leaves_margin(settings: Settings) -> bool:
            need = self._fits(settings)
            if need.note is not None:
                return False
            gpus = [d for d in need.devices if d.device != HOST]
            return all(_engine_left(d) >= AUTO_FIT_MARGIN_BYTES for d in gpus)

        return self._largest(ladder, base, leaves_margin)

    def _leaves_headroom(self, device: DeviceMemory) -> bool:
        if device.total_bytes > self.ceiling.get(device.device, device.total_bytes):
            return False
        return self._free_headroom(device)

    def _free_headroom(self, device: DeviceMemory) -> bool:
        if device.free_bytes is None:
            return True
        headroom = self._headroom_bytes
        wanted = device.headroom_bytes if headroom is None else headroom
        return device.free_bytes - device.total_bytes - device.reserve_bytes >= wanted

    def _largest(
        self, ladder: tuple[Rung, ...], base: Settings, holds: Callable[[Settings], bool]
    ) -> int | None:
        if not ladder:
            return None
        if holds(ladder[-1].of(base)):
            return len(ladder) - 1
        low, high = 0, len(ladder) - 1
        if self.refused(ladder[0].of(base)) or self.refused(ladder[-1].of(base)):
            # a recording with gaps: the answer is not monotone, so look at every rung
            good = [i for i, rung in enumerate(ladder) if holds(rung.of(base))]
            return good[-1] if good else None
        if not holds(ladder[0].of(base)):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(ladder[middle].of(base)) else (low, middle)
        return low


def _engine_left(device: DeviceMemory) -> int:
    """Return the bytes left as llama.cpp counts: without driver context and growth."""
    uncounted = (device.driver_context_bytes or 0) + (device.growth_bytes or 0)
    return (device.free_bytes or 0) - (device.total_bytes - uncounted)
