"""A rig over a made-up machine whose best answer is known exactly."""

from collections.abc import Iterator
from itertools import product

import msgspec

from app.domain.outcome import OUTCOMES
from app.domain.record import Record
from app.domain.settings import FlashAttn, LoadMode, Settings
from app.domain.sweep import GOAL_WORKLOADS, SweepRequest
from app.domain.units import GIB, MIB
from app.rig.replay_file import FORMAT, Replay, ReplayPoint
from app.rig.simulated_machine import SimulatedMachine
from app.rig.virtual import HEADROOM_BYTES, Truth, VirtualRig

SPILL_BYTES = 64 * MIB
KV_GAIN = 1.05
PINNED_RAM_FRAC = 0.4
PINNED_SPARE_BYTES = 4 * GIB
UBATCHES = (128, 256, 512, 1024, 2048)


class Best(Record, frozen=True, kw_only=True):
    """The best configuration and its true seconds for the goal's request."""

    settings: Settings
    request_s: float


class SimulatedRig(VirtualRig):
    """Runs trials on a ``SimulatedMachine``, deterministically by its seed."""

    def __init__(self, machine: SimulatedMachine, headroom_bytes: int | None = None) -> None:
        """Set the machine up; ``headroom_bytes`` as for a replay."""
        self.machine = machine
        super().__init__(
            machine.space(),
            machine,
            noise_frac=machine.noise_frac,
            seed=machine.seed,
            headroom_bytes=headroom_bytes,
        )

    def true_request_s(self, settings: Settings, request: SweepRequest) -> float | None:
        """Return the noise-free request time, ``None`` where it fails or spills."""
        work = GOAL_WORKLOADS[request.goal]
        truth = self.machine.truth(self.concrete(settings), work.depth, work.n_seq, 0)
        if truth is None or not OUTCOMES[truth.outcome].has_speed or self._spills(settings):
            return None
        assert truth.prefill_tok_s is not None
        assert truth.decode_tok_s is not None
        prefill_s = work.n_prompt / truth.prefill_tok_s
        return prefill_s + work.n_gen / truth.decode_tok_s

    def exhaustive_best(self, request: SweepRequest, n_ctx: int) -> Best:
        """Return the best of every configuration that leaves the headroom and does not spill.

        Weights are pinned only where they are at most 40 % of RAM and leave 4 GiB of it.

        A quantised KV cache counts only if it is 5 % faster than the best without.
        """
        best: dict[str, Best] = {}
        for settings in self.every_setting(request, n_ctx):
            if not self._leaves_headroom(settings) or not self._may_be_pinned(settings):
                continue
            time_s = self.true_request_s(settings, request)
            known = best.get(settings.type_k)
            if time_s is not None and (known is None or time_s < known.request_s):
                best[settings.type_k] = Best(settings=settings, request_s=time_s)
        full = best.pop("f16", None)
        rival = min(best.values(), key=lambda b: b.request_s, default=None)
        if full is None or (rival and rival.request_s * KV_GAIN <= full.request_s):
            assert rival is not None
            return rival
        return full

    def every_setting(self, request: SweepRequest, n_ctx: int) -> Iterator[Settings]:
        """Yield the whole grid: placements × batches × flash attention × KV × threads × load."""
        machine, kinds = self.machine, request.kv_types
        cores = machine.cores
        threads = sorted({max(1, cores // 2), cores, 2 * cores})
        seq = GOAL_WORKLOADS[request.goal].n_seq
        base = Settings(n_gpu_layers=0, n_ctx=n_ctx, n_seq_max=seq)
        for layers, moe in self.placements():
            for ubatch, flash, kind, n, mode in product(
                UBATCHES, (FlashAttn.ON, FlashAttn.OFF), kinds, threads, LoadMode
            ):
                if kind != "f16" and flash is FlashAttn.OFF:
                    continue
                yield msgspec.structs.replace(
                    base,
                    n_gpu_layers=layers,
                    n_cpu_moe=moe,
                    n_ubatch=ubatch,
                    flash_attn=flash,
                    type_k=kind,
                    type_v=kind,
                    n_threads=n,
                    load_mode=mode,
                    devices=("gpu0",) if layers else (),
                )

    def placements(self) -> Iterator[tuple[int, int]]:
        """Yield (n_gpu_layers, n_cpu_moe)."""
        blocks = self.machine.n_layer
        yield from ((n, 0) for n in range(blocks + 2))
        if self.machine.expert_frac:
            yield from ((blocks + 1, k) for k in range(1, blocks + 1))
            yield from ((n, blocks) for n in range(1, blocks + 1))

    def to_replay(self, settings: Iterator[Settings], depths: tuple[int, ...]) -> Replay:
        """Return a recording of ``settings`` at ``depths``, noise-free."""
        points = []
        for each in settings:
            for depth in depths:
                truth = self.machine.truth(self.concrete(each), depth, each.n_seq_max, 0)
                if truth is not None:
                    points.append(_point(each, depth, truth))
        space = self.space()
        return Replay(
            format=FORMAT,
            model=space.model,
            host=space.host,
            devices=space.devices,
            noise_frac=self.machine.noise_frac,
            seed=self.machine.seed,
            load_s=self.machine.load_s,
            points=tuple(points),
        )

    def _leaves_headroom(self, settings: Settings) -> bool:
        need = self.machine.need_bytes(self.concrete(settings))
        return self.machine.free_bytes - need >= HEADROOM_BYTES or not settings.devices

    def _may_be_pinned(self, settings: Settings) -> bool:
        in_ram, ram = (
            self.machine.weights_in_ram_bytes(self.concrete(settings)),
            self.machine.ram_bytes,
        )
        is_small = in_ram <= min(PINNED_RAM_FRAC * ram, ram - PINNED_SPARE_BYTES)
        return settings.load_mode is not LoadMode.NONE or is_small

    def _spills(self, settings: Settings) -> bool:
        """Whether shared memory visibly grows; an invisible spill shows in its time alone."""
        machine = self.machine
        true_bytes = machine.free_bytes * (1 - machine.lie_frac)
        over = machine.need_bytes(self.concrete(settings)) - true_bytes
        return machine.growth_is_seen and over > SPILL_BYTES


def _point(settings: Settings, depth: int, truth: Truth) -> ReplayPoint:
    names = (
        "n_gpu_layers", "n_cpu_moe", "n_ctx", "n_ubatch", "flash_attn", "type_k", "type_v",
        "n_threads",
    )  # fmt: skip
    return ReplayPoint(
        settings={n: getattr(settings, n) for n in names},
        depth=depth,
        outcome=truth.outcome,
        prefill_tok_s=None if truth.prefill_tok_s is None else round(truth.prefill_tok_s, 3),
        decode_tok_s=None if truth.decode_tok_s is None else round(truth.decode_tok_s, 4),
        device_bytes=truth.device_bytes,
        shared_growth_bytes=truth.shared_growth_bytes,
    )
