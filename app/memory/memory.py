"""One model on one machine: what configurations need, whether they fit, and what would."""

import time
from collections.abc import Callable, Mapping
from copy import copy

import msgspec

from app.domain.errors import ErrorInfo
from app.domain.machine import GpuKind, HostInfo
from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.domain.model import ModelSpec
from app.domain.settings import LoadMode, Settings
from app.domain.sweep import SearchDevice
from app.estimate.ceiling import ceiling_tok_s, token_bytes
from app.estimate.divided import is_divided
from app.estimate.formula import Formula
from app.estimate.profile import DEFAULT_PROFILE, EngineProfile, FormulaDevice
from app.estimate.refusal import refusal
from app.estimate.weights import holds_fewer
from app.memory.inverse import Room, cheapest, largest, past_gaps, smallest
from app.memory.judge import Judgement, Surroundings, free_now, judge
from app.memory.overhead import Overhead, is_cpu_backed
from app.memory.ram import HOST
from app.memory.room import room_left
from app.memory.split import split_state, with_compute
from app.worker.protocol import NO_BREAKDOWN

Planned = tuple[DeviceMemory, ...] | ErrorInfo
Planner = Callable[[Settings], Planned]
PlanCache = dict[tuple[str, Settings, str], Planned]

_CUDA_LIKE = frozenset({"CUDA", "ROCm", "HIP", "MUSA"})
_CTX_STEP = 256
# search bound where the model does not say what it was trained for
_MAX_CTX = 1 << 20
# from exact to coarse; the first that fits loses least
KV_LADDER = ("f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")


class Memory:
    """Chooses formula or dry run, judges, and answers inverse questions.

    Not thread-safe. Free memory is that of construction: make a new one, or ``freed``, when it
    changed.
    """

    def __init__(
        self,
        spec: ModelSpec,
        devices: tuple[SearchDevice, ...],
        host: HostInfo | None = None,
        planner: Planner | None = None,
        *,
        headroom_bytes: int | None = None,
        reserve_bytes: int = 0,
        displays: frozenset[str] = frozenset(),
        unified: Mapping[str, int] | None = None,
        unread: Mapping[str, str] | None = None,
        calibration: Mapping[str, Overhead] | None = None,
        cache: PlanCache | None = None,
        engine_build: str = "",
        profile: EngineProfile = DEFAULT_PROFILE,
    ) -> None:
        """Prepare for one model.

        Args:
            spec: The model.
            devices: Engine devices with the free memory of now; empty = CPU only.
            host: RAM and its availability.
            planner: The worker's dry run; ``None`` = only the formula.
            headroom_bytes: What to leave free per device; ``None`` = 512 MiB on a card that
                drives a display, 256 MiB elsewhere.
            reserve_bytes: What else must fit on the first device used.
            displays: Devices a display hangs on.
            unified: Devices whose memory is system memory → free bytes of their carve-out.
            unread: Devices whose free memory is not known → why.
            calibration: Overheads learned from real loads, by ``calibration_slot``.
            cache: Dry runs so far, shared between instances.
            engine_build: What identifies the engine's build in ``cache``.
            profile: How the engine creates contexts.
        """
        self.spec = spec
        self._around = Surroundings(
            devices=devices,
            host=host,
            displays=displays,
            unified=dict(unified or {}),
            unread=dict(unread or {}),
            headroom_bytes=headroom_bytes,
            reserve_bytes=reserve_bytes,
            calibration=dict(calibration or {}),
        )
        self._planner = planner
        self._cache = cache if cache is not None else {}
        self._build = engine_build
        self._profile = profile
        self._formula = Formula(spec, tuple(formula_device(d) for d in devices), profile)

    def estimate(self, settings: Settings, *, exact: bool = False) -> MemoryEstimate:
        """Return the need of ``settings`` and whether it fits.

        Args:
            settings: The configuration.
            exact: Ask the engine's dry run; without a planner the formula answers.
        """
        start_ns = time.perf_counter_ns()
        answer_with = self._planned if exact and self._planner else self._calculated
        answer = answer_with(settings)
        elapsed_ms = (time.perf_counter_ns() - start_ns) / 1e6
        return msgspec.structs.replace(answer, elapsed_ms=elapsed_ms)

    def is_unread(self, settings: Settings) -> bool:
        """Return whether the free memory of a device that would be used is not known."""
        if not self._around.unread:
            return False
        full = msgspec.structs.replace(settings, n_gpu_layers=self.spec.max_gpu_layers)
        return any(part.device in self._around.unread for part in self._formula.estimate(full))

    def freed(self, free_more: Mapping[str, int]) -> "Memory":
        """Return the same with more free memory per device: "if I close that program"."""
        devices = tuple(
            msgspec.structs.replace(d, free_bytes=d.free_bytes + free_more.get(d.id, 0))
            for d in self._around.devices
        )
        twin = copy(self)
        # a copy of our own class
        twin._around = msgspec.structs.replace(self._around, devices=devices)  # noqa: SLF001
        placed = tuple(formula_device(d) for d in devices)
        twin._formula = Formula(self.spec, placed, self._profile)  # noqa: SLF001
        return twin

    def max_n_gpu_layers(self, settings: Settings, *, exact: bool = False) -> int | None:
        """Return the most layers the devices hold at this context.

        ``None`` = not even none, or not known (``is_unread``). RAM is not asked here; the
        estimate of the answer has its verdict. Over several devices one layer more may need less
        of the one that is short: where that may be is asked beyond the first that does not fit.
        """
        if not self._around.devices:
            return 0
        name, high = "n_gpu_layers", self.spec.max_gpu_layers
        full = msgspec.structs.replace(settings, n_gpu_layers=high)
        devices = self._formula.used(full)
        if self.is_unread(settings) or is_divided(full, devices):
            return None
        found = self._search(name, settings, 0, high, exact=exact)
        if len(devices) > 1:
            room = self._room_with(name, settings, exact=exact)
            below = -1 if found is None else found
            most = past_gaps(below, high, room, len(devices), lambda n: holds_fewer(n, devices))
            return most if most >= 0 else None
        return found

    def max_n_ctx(self, settings: Settings, *, exact: bool = False) -> int | None:
        """Return the longest context that fits at the layers of ``settings``, tokens.

        At most what the model was trained for, in steps of 256.
        """
        high = (self.spec.n_ctx_train or _MAX_CTX) // _CTX_STEP
        return self._search("n_ctx", settings, 1, max(1, high), _CTX_STEP, exact=exact)

    def min_n_cpu_moe(self, settings: Settings, *, exact: bool = False) -> int | None:
        """Return how many layers must keep their experts in RAM for the rest to fit."""
        if self.spec.n_expert == 0:
            return None
        fast = smallest(0, self.spec.n_layer, self._room_with("n_cpu_moe", settings, exact=False))
        if not exact:
            return fast
        room = self._room_with("n_cpu_moe", settings, exact=True)
        return smallest(0, self.spec.n_layer, room, self.spec.n_layer if fast is None else fast)

    def cheapest_kv(
        self,
        settings: Settings,
        kv_types: tuple[str, ...] = KV_LADDER,
        *,
        exact: bool = False,
    ) -> str | None:
        """Return the first of ``kv_types``, used for K and V, with which it fits."""

        def fits(kv_type: str) -> bool:
            changed = msgspec.structs.replace(settings, type_k=kv_type, type_v=kv_type)
            return self.estimate(changed, exact=exact).verdict is Verdict.FITS

        return cheapest(kv_types, fits)

    def next_layer_bytes(self, settings: Settings, *, exact: bool = False) -> int | None:
        """Return what one more GPU layer costs over all devices; ``None`` when all are there."""
        if not self._around.devices or settings.n_gpu_layers >= self.spec.max_gpu_layers:
            return None
        more = msgspec.structs.replace(settings, n_gpu_layers=settings.n_gpu_layers + 1)
        before = self.estimate(settings, exact=exact).device_bytes()
        return sum(self.estimate(more, exact=exact).device_bytes().values()) - sum(before.values())

    def predicted_tok_s(
        self, settings: Settings, bandwidth_gb_s: Mapping[str, float], depth: int = 0
    ) -> float | None:
        """Return the decode speed that bandwidth allows at most (estimated)."""
        return ceiling_tok_s(self.token_bytes(settings, depth), dict(bandwidth_gb_s))

    def token_bytes(self, settings: Settings, depth: int = 0) -> dict[str, int]:
        """Return the bytes each device (``host`` = CPU) reads for one token at ``depth``.

        Empty where devices share each layer (split modes ``row`` and ``tensor``).
        """
        used = self._formula.used(settings)
        return token_bytes(self.spec, settings, used, depth, self._profile)

    def _search(
        self, name: str, settings: Settings, low: int, high: int, step: int = 1, *, exact: bool
    ) -> int | None:
        fast = largest(low, high, self._room_with(name, settings, step, exact=False))
        best = fast
        if exact:
            room = self._room_with(name, settings, step, exact=True)
            best = largest(low, high, room, low if fast is None else fast)
        return None if best is None else best * step

    def _room_with(self, name: str, settings: Settings, step: int = 1, *, exact: bool) -> Room:
        def room(value: int) -> float:
            changed = msgspec.structs.replace(settings, **{name: value * step})
            estimate = self.estimate(changed, exact=exact)
            return room_left(estimate, self._formula.error_bytes, with_ram=name == "n_ctx")

        return room

    def _calculated(
        self, settings: Settings, *, engine: tuple[DeviceMemory, ...] = ()
    ) -> MemoryEstimate:
        """Return the formula's answer, with the compute buffers of ``engine`` where it has them."""
        why = refusal(self.spec, settings)
        if why is not None:
            return _refused(MemorySource.FORMULA, why)
        parts = self._formula.estimate(settings)
        errors = {p.device: self._formula.error_bytes(p) for p in parts}
        if engine:
            parts, errors = with_compute(parts, engine), dict.fromkeys(errors, 0)
        judgement = self._judge(parts, settings, errors)
        note = judgement.note
        if is_divided(settings, self._formula.used(settings)):
            # its shares are never counted by the engine: too much already, or not known
            return MemoryEstimate(
                devices=tuple(_at_least(d) for d in judgement.devices),
                source=MemorySource.FORMULA,
                verdict=_at_least_verdict(judgement.verdict),
                note=note,
            )
        uncovered = self._uncovered(parts)
        if uncovered:
            note = note or f"No formula for {uncovered}: the dry run knows."
            return MemoryEstimate(
                devices=tuple(_at_least(d) for d in judgement.devices),
                source=MemorySource.FORMULA,
                verdict=_at_least_verdict(judgement.verdict),
                note=note,
            )
        return MemoryEstimate(
            devices=judgement.devices,
            source=MemorySource.FORMULA,
            verdict=judgement.verdict,
            note=note,
            max_error_pct=_error_pct(parts, errors),
        )

    def _uncovered(self, parts: tuple[DeviceMemory, ...]) -> str | None:
        """Return what the formula does not cover: an architecture, a software GPU's limits."""
        if not self._formula.known:
            return self.spec.arch
        used = {part.device for part in parts}
        software = (d.id for d in self._around.devices if d.kind == GpuKind.SOFTWARE)
        return next((f"the software device {name}" for name in software if name in used), None)

    def _planned(self, settings: Settings) -> MemoryEstimate:
        planned = self._plan(settings)
        if isinstance(planned, ErrorInfo) and planned.code == NO_BREAKDOWN:
            # this build cannot say what it would allocate; that is no verdict on the settings
            return self._calculated(settings)
        if isinstance(planned, ErrorInfo):
            return _refused(MemorySource.DRY_RUN, planned.message)
        if any(part.weights_bytes is None for part in planned):
            return self._calculated(settings, engine=planned)
        judgement = self._judge(self._told_apart(planned, settings), settings, {})
        return MemoryEstimate(
            devices=judgement.devices,
            source=MemorySource.DRY_RUN,
            verdict=judgement.verdict,
            note=judgement.note,
        )

    def _told_apart(
        self, planned: tuple[DeviceMemory, ...], settings: Settings
    ) -> tuple[DeviceMemory, ...]:
        """Return the dry run with a hybrid's state apart from its KV cache, where that adds up."""
        if self.spec.recurrent is None or not self._formula.known:
            return planned
        return split_state(planned, self._formula.estimate(settings))

    def _plan(self, settings: Settings) -> Planned:
        assert self._planner is not None
        plain = msgspec.structs.replace(
            settings, n_threads=0, n_threads_batch=0, load_mode=LoadMode.MMAP
        )
        key = (self.spec.fingerprint, plain, self._build)
        if key not in self._cache:
            self._cache[key] = self._planner(settings)
        return self._cache[key]

    def _judge(
        self, parts: tuple[DeviceMemory, ...], settings: Settings, errors: Mapping[str, int]
    ) -> Judgement:
        around = self._around
        if settings.load_mode is LoadMode.MMAP:
            repacked = self._formula.repacked_bytes(settings)
            around = msgspec.structs.replace(around, repacked_bytes=repacked)
        return judge(parts, settings, around, errors)


def _refused(source: MemorySource, why: str) -> MemoryEstimate:
    return MemoryEstimate(devices=(), source=source, verdict=Verdict.DOES_NOT_FIT, note=why)


def _at_least(device: DeviceMemory) -> DeviceMemory:
    return msgspec.structs.replace(device, verdict=_at_least_verdict(device.verdict))


def _at_least_verdict(verdict: Verdict) -> Verdict:
    """Return what a total that lacks parts can say: too much already, or nothing."""
    return verdict if verdict is Verdict.DOES_NOT_FIT else Verdict.UNKNOWN


def formula_device(device: SearchDevice) -> FormulaDevice:
    """Return what the formula must know of ``device``, by its backend."""
    cpu_backed = is_cpu_backed(device)
    return FormulaDevice(
        name=device.id,
        split=float(free_now(device)),
        has_host_buffer=device.backend != "RPC",
        has_op_offload=device.backend != "RPC",
        alignment=32 if cpu_backed else 128,
        row_pad=512 if device.backend in _CUDA_LIKE else 1,
        is_remote=device.kind == GpuKind.REMOTE,
        is_integrated=device.kind == GpuKind.INTEGRATED,
    )


def _error_pct(parts: tuple[DeviceMemory, ...], errors: Mapping[str, int]) -> float:
    """Return the widest error bar over the devices (RAM only where there is no other)."""
    gpus = [p for p in parts if p.device != HOST and p.total_bytes] or list(parts)
    return max(100 * errors[p.device] / p.total_bytes for p in gpus if p.total_bytes)
