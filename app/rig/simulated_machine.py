"""A made-up machine and model: memory and time by a handful of parameters.

Shapes follow what was measured on real cards: time per token linear in the layers on each side,
a last step for the output layer, prefill of CPU layers bound by the transfer of their weights,
attention of CPU layers slowing down with depth. Free memory may be less than reported.
"""

import math
import random

import msgspec

from app.domain.outcome import Outcome
from app.domain.record import Record
from app.domain.settings import KV_TYPES, FlashAttn, LoadMode, Settings
from app.domain.sweep import SearchDevice, SearchHost, SearchModel, SearchSpace
from app.domain.units import GIB, MIB
from app.rig.virtual import Truth, scenario_key

DEVICE = "gpu0"
EXPERT_TIME = 0.55  # of a CPU block's decode: its active experts alone


class SimulatedMachine(Record, frozen=True, kw_only=True):
    """One machine with one model. Times in milliseconds, memory in bytes.

    Attributes:
        n_layer: Blocks.
        layer_bytes: Weights of one block.
        output_bytes: Weights of the output layer.
        expert_frac: Share of a block's weights that are experts; 0 = a dense model.
        kv_bytes: KV cache per token and block at f16.
        gpu_layer_ms: Decode of one block on the GPU.
        cpu_layer_ms: Decode of one block on the CPU with the best thread count.
        gpu_output_ms: Output layer on the GPU.
        cpu_output_ms: Output layer on the CPU.
        overhead_ms: Per token, whatever runs where.
        gpu_depth_frac: Extra decode time of a GPU block per 1,000 tokens of depth.
        cpu_depth_frac: Extra decode time of a CPU block per 1,000 tokens of depth.
        prefill_gpu_ms: Prefill per token, everything on the GPU, at ubatch 512.
        prefill_cpu_ms: Prefill per token and CPU block at ubatch 512.
        ubatch_power: Prefill of CPU blocks falls as ubatch to this power (transfer bound: 1).
        ubatch_gpu_frac: Gain of GPU prefill from ubatch 512 to 1024; a tenth less at 2048.
        compute_bytes: Compute buffer at ubatch 512, proportional to ubatch.
        no_fa_bytes: Extra without flash attention.
        no_fa_time: Factor on time without flash attention, on GPU blocks.
        q8_time: Factor on GPU block decode with a q8_0 cache.
        pinned_gain: Factor by which copied host weights speed up CPU blocks' prefill.
        thread_power: Decode speed on the CPU grows as threads to this power, up to the cores.
        smt_frac: Speed with all hardware threads relative to all cores.
        cores: Physical cores; hardware threads are twice as many.
        ram_bytes: RAM.
        total_bytes: Memory of the card.
        free_bytes: Free memory as reported.
        lie_frac: Share of it that is not there.
        spills: Whether the driver spills to RAM instead of failing.
        growth_is_seen: Whether the shared memory is visible.
        spill_ms_per_gib: Extra decode time per GiB spilled.
        load_s: Seconds per load.
        disturbed_frac: Share of trials that something else slows down.
        noise_frac: Relative standard deviation of one sample.
        seed: Seed of noise and disturbances.
    """

    n_layer: int
    layer_bytes: int
    output_bytes: int
    expert_frac: float = 0.0
    kv_bytes: int = 4096
    gpu_layer_ms: float = 0.5
    cpu_layer_ms: float = 3.2
    gpu_output_ms: float = 0.5
    cpu_output_ms: float = 3.2
    overhead_ms: float = 0.5
    gpu_depth_frac: float = 0.01
    cpu_depth_frac: float = 0.05
    prefill_gpu_ms: float = 0.5
    prefill_cpu_ms: float = 0.1
    ubatch_power: float = 0.8
    ubatch_gpu_frac: float = 0.1
    compute_bytes: int = 300 * MIB
    no_fa_bytes: int = 150 * MIB
    no_fa_time: float = 1.06
    q8_time: float = 1.02
    pinned_gain: float = 1.0
    thread_power: float = 0.6
    smt_frac: float = 0.9
    cores: int = 8
    ram_bytes: int = 64 * GIB
    total_bytes: int = 8 * GIB
    free_bytes: int = 7 * GIB
    lie_frac: float = 0.0
    spills: bool = False
    growth_is_seen: bool = True
    spill_ms_per_gib: float = 30.0
    load_s: float = 3.0
    disturbed_frac: float = 0.0
    noise_frac: float = 0.01
    seed: int = 0

    def space(self) -> SearchSpace:
        """Return what a search may know of it."""
        every = self.layer_bytes * self.n_layer + self.output_bytes
        return SearchSpace(
            model=SearchModel(
                name=f"simulated-{self.seed}",
                n_layer=self.n_layer,
                n_expert=64 if self.expert_frac else 0,
                n_ctx_train=32768,
                file_bytes=every,
            ),
            host=SearchHost(
                cores_physical=self.cores,
                cores_logical=2 * self.cores,
                ram_bytes=self.ram_bytes,
            ),
            devices=(
                SearchDevice(
                    id=DEVICE,
                    kind="discrete",
                    backend="CUDA",
                    total_bytes=self.total_bytes,
                    free_bytes=self.free_bytes,
                ),
            ),
            load_s=self.load_s,
        )

    def need_bytes(self, s: Settings) -> int:
        """Return what ``s`` (concrete) allocates on the card."""
        if not s.devices:
            return 0
        blocks = min(s.n_gpu_layers, self.n_layer)
        moved = min(self.blocks_without_experts(s), blocks) * self.expert_frac
        n_bytes = (blocks - moved) * self.layer_bytes
        n_bytes += self.output_bytes if s.n_gpu_layers > self.n_layer else 0
        n_bytes += blocks * self.kv_bytes * s.n_ctx * _kv_share(s.type_k)
        n_bytes += self.compute_bytes * s.n_ubatch / 512
        return round(n_bytes + (self.no_fa_bytes if s.flash_attn is FlashAttn.OFF else 0))

    def weights_in_ram_bytes(self, s: Settings) -> int:
        """Return the weights that ``s`` (concrete) leaves in RAM."""
        blocks = min(s.n_gpu_layers, self.n_layer)
        moved = min(self.blocks_without_experts(s), blocks) * self.expert_frac
        n_bytes = (self.n_layer - blocks + moved) * self.layer_bytes
        return round(n_bytes + (0 if s.n_gpu_layers > self.n_layer else self.output_bytes))

    def blocks_without_experts(self, s: Settings) -> int:
        """Return how many GPU blocks keep their experts in RAM (the first N blocks do).

        llama.cpp puts the last blocks on the GPU, so some of the first N are on the CPU anyway.
        """
        first_on_gpu = max(0, self.n_layer - s.n_gpu_layers)
        return max(0, s.n_cpu_moe - first_on_gpu)

    def truth(self, settings: Settings, depth: int, n_seq: int, nth: int) -> Truth | None:
        """Return what happens with concrete ``settings``."""
        if settings.type_v != "f16" and settings.flash_attn is FlashAttn.OFF:
            return Truth(outcome=Outcome.UNSUPPORTED)
        if settings.n_gpu_layers > self.n_layer + 1:
            return Truth(outcome=Outcome.UNSUPPORTED)
        need = self.need_bytes(settings)
        over = max(0, need - round(self.free_bytes * (1 - self.lie_frac)))
        known = Truth(outcome=Outcome.OUT_OF_MEMORY, device_bytes={DEVICE: need})
        if over and not self.spills:
            return known
        step_ms = self.decode_ms(settings, depth) + over / GIB * self.spill_ms_per_gib
        slow_down, why = self._disturbance(settings, depth, nth)
        return msgspec.structs.replace(
            known,
            outcome=Outcome.OK,
            decode_tok_s=1000 / (step_ms * (1 + 0.1 * (n_seq - 1))),
            prefill_tok_s=1000 / self.prefill_ms(settings) / n_seq,
            shared_growth_bytes=over if self.growth_is_seen else 0,
            slow_down=slow_down,
            disturbed=why,
        )

    def need(self, settings: Settings, n_seq: int) -> Truth | None:
        """Return what a dry run says of concrete ``settings``."""
        return self.truth(settings, 0, n_seq, 0)

    def decode_ms(self, s: Settings, depth: int) -> float:
        """Return the time of one token without a spill."""
        on_gpu = min(s.n_gpu_layers, self.n_layer)
        moved = min(self.blocks_without_experts(s), on_gpu)
        gpu = self.gpu_layer_ms * (1 + self.gpu_depth_frac * depth / 1000)
        gpu *= self.no_fa_time if s.flash_attn is FlashAttn.OFF else 1.0
        gpu *= self.q8_time if s.type_k != "f16" else 1.0
        threads = self._thread_time(s.n_threads)
        cpu = self.cpu_layer_ms * threads * (1 + self.cpu_depth_frac * depth / 1000)
        expert = EXPERT_TIME * self.cpu_layer_ms * threads
        time = on_gpu * gpu + (self.n_layer - on_gpu) * cpu + moved * expert
        has_output = s.n_gpu_layers > self.n_layer
        time += self.gpu_output_ms if has_output else self.cpu_output_ms * threads
        return time + self.overhead_ms

    def prefill_ms(self, s: Settings) -> float:
        """Return the time of one prompt token."""
        on_gpu = min(s.n_gpu_layers, self.n_layer)
        moved = min(self.blocks_without_experts(s), on_gpu)
        gain = {512: 0.0, 1024: 1.0, 2048: 0.9, 256: -1.2, 128: -2.5}.get(s.n_ubatch, 0.0)
        gpu = self.prefill_gpu_ms * (1 - gain * self.ubatch_gpu_frac)
        gpu *= self.no_fa_time if s.flash_attn is FlashAttn.OFF else 1.0
        if not s.devices:
            threads = self._thread_time(s.n_threads_batch or s.n_threads)
            return gpu + self.n_layer * self.prefill_cpu_ms * 3 * threads
        cpu = self.prefill_cpu_ms * math.pow(512 / s.n_ubatch, self.ubatch_power)
        cpu /= self.pinned_gain if s.load_mode is LoadMode.NONE else 1.0
        return gpu + cpu * (self.n_layer - on_gpu + moved * self.expert_frac)

    def _thread_time(self, threads: int) -> float:
        n = threads or self.cores
        best = max(1.0, self.smt_frac)
        if n > self.cores:
            return best / self.smt_frac
        return float(best / (n / self.cores) ** self.thread_power)

    def _disturbance(self, settings: Settings, depth: int, nth: int) -> tuple[float, str | None]:
        rng = random.Random(f"{self.seed}/disturb/{scenario_key(settings)}/{depth}/{nth}")  # noqa: S311 - a scenario, not a secret
        if rng.random() >= self.disturbed_frac:
            return 1.0, None
        return 1 + rng.uniform(0.1, 0.5), "another program used the GPU"


def random_machine(seed: int) -> SimulatedMachine:
    """Return a machine drawn from the whole range the search must cope with."""
    rng = random.Random(seed)  # noqa: S311 - a scenario, not a secret
    n_layer = rng.choice([16, 24, 28, 32, 40, 48, 60, 80])
    is_moe = rng.random() < 0.25
    layer_bytes = rng.randint(60, 400) * MIB
    output_bytes = rng.randint(100, 700) * MIB
    every = layer_bytes * n_layer + output_bytes
    # people try models from a quarter of their card to three times its memory
    cards = [c * GIB for c in (4, 6, 8, 12, 16, 24, 32) if c * GIB * (5 if is_moe else 3) > every]
    total = rng.choice(cards[:4])
    free = round(total * rng.uniform(0.6, 0.97))
    gpu_ms = layer_bytes / GIB * rng.uniform(1.5, 8)
    ratio = rng.choice([0.7, 1.5, 3, 5, 8, 12])
    lies = rng.random() < 0.25
    compute = rng.randint(80, 400) * MIB
    return SimulatedMachine(
        n_layer=n_layer,
        layer_bytes=layer_bytes,
        output_bytes=output_bytes,
        expert_frac=rng.uniform(0.7, 0.95) if is_moe else 0.0,
        kv_bytes=rng.choice([1024, 2048, 4096, 8192, 16384]),
        gpu_layer_ms=gpu_ms,
        cpu_layer_ms=gpu_ms * ratio,
        gpu_output_ms=gpu_ms * output_bytes / layer_bytes,
        cpu_output_ms=gpu_ms * ratio * output_bytes / layer_bytes,
        overhead_ms=rng.uniform(0.2, 2),
        gpu_depth_frac=rng.uniform(0, 0.03),
        cpu_depth_frac=rng.uniform(0, 0.15),
        prefill_gpu_ms=rng.uniform(0.1, 3),
        prefill_cpu_ms=rng.uniform(0.5, 3) * every / GIB / n_layer / 8,
        ubatch_power=rng.uniform(0.3, 1),
        ubatch_gpu_frac=rng.uniform(-0.02, 0.15),
        compute_bytes=compute,
        no_fa_bytes=rng.randint(20, 400) * MIB,
        no_fa_time=rng.choice([0.93, 0.99, 1.03, 1.06, 1.15]),
        q8_time=rng.choice([0.98, 1.0, 1.02, 1.1, 1.8]),
        pinned_gain=rng.choice([1.0, 1.0, 1.5, 4.0]),
        thread_power=rng.uniform(0.05, 0.9),
        smt_frac=rng.uniform(0.75, 1.05),
        cores=rng.choice([4, 6, 8, 12, 16]),
        ram_bytes=max(16, 2 ** ((2 * every) // GIB).bit_length()) * GIB,
        total_bytes=total,
        free_bytes=free,
        lie_frac=rng.uniform(0.02, 0.2) if lies else 0.0,
        spills=rng.random() < 0.4,
        growth_is_seen=rng.random() < 0.8,
        spill_ms_per_gib=rng.choice([15.0, 30.0, 60.0, 150.0]),
        load_s=max(1.0, every / GIB * rng.uniform(0.3, 1.5)),
        disturbed_frac=rng.choice([0.0, 0.0, 0.05, 0.1]),
        noise_frac=rng.uniform(0, 0.06),
        seed=seed,
    )


def _kv_share(kind: str) -> float:
    block_bytes, block = KV_TYPES[kind]
    return block_bytes / block / 2
