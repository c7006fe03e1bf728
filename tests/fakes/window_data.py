"""A made-up machine, model and search: what the window's tests and pictures show."""

import random

from app.domain.errors import ErrorInfo
from app.domain.events import (
    SweepFinished,
    SweepPlanned,
    TrialFinished,
    TrialProgress,
    TrialStarted,
)
from app.domain.machine import (
    EngineDevice,
    EngineInfo,
    Gpu,
    GpuInfo,
    GpuKind,
    GpuProcess,
    GpuSample,
    HostInfo,
    HostSample,
    Machine,
    PowerSource,
    PowerState,
)
from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.domain.model import ModelSpec
from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import (
    Cliff,
    ContextPoint,
    PlannedStage,
    Reason,
    Recommended,
    SearchDevice,
    SearchHost,
    SearchModel,
    SearchSpace,
    SweepPlan,
    SweepRequest,
    SweepResult,
    SweepStatus,
)
from app.domain.trial import Rate, Sample, Trial, TrialRequest, Workload
from app.domain.units import GIB, MIB
from app.sweep.stats import rate
from app.worker.protocol import TemplateChecked, TemplateFinding

GPU_KEY = "GPU-1"
ASLEEP_KEY = "0000:00:02.0"
N_LAYER = 28
WORKLOAD = Workload(n_prompt=512, n_gen=64, depth=2048)

HOST = HostInfo(
    os="linux", os_version="6.8.0", cpu_name="AMD Ryzen 7 7840HS", cores_physical=8,
    cores_logical=16, ram_bytes=32 * GIB, ram_available_bytes=21 * GIB, swap_bytes=0,
    power_source=PowerSource.AC, is_laptop=True,
)  # fmt: skip
DISCRETE = Gpu(
    key=GPU_KEY,
    info=GpuInfo(
        probe="nvml", uuid=GPU_KEY, pci_id="0000:01:00.0", name="NVIDIA GeForce RTX 4070 Laptop",
        vendor="nvidia", kind=GpuKind.DISCRETE, driver="nvidia 580.65", vram_total_bytes=8 * GIB,
        drives_display=False, pcie_gen_max=4, pcie_width_max=8, power_limit_default_w=115.0,
        temp_slowdown_c=87.0,
    ),
    engine=(
        EngineDevice(
            name="CUDA0", backend="CUDA", description="RTX 4070 Laptop", kind=GpuKind.DISCRETE,
            total_bytes=8 * GIB, free_bytes=7 * GIB,
        ),
    ),
)  # fmt: skip
ASLEEP = Gpu(
    key=ASLEEP_KEY,
    info=GpuInfo(
        probe="drm", pci_id=ASLEEP_KEY, name="AMD Radeon 780M", vendor="amd",
        kind=GpuKind.INTEGRATED, driver="amdgpu 6.8", drives_display=True,
    ),
)  # fmt: skip
MACHINE = Machine(
    host=HOST,
    gpus=(DISCRETE, ASLEEP),
    engine=EngineInfo(
        version="0.3.36", llama_version="b6700", backends=("CPU", "CUDA"),
        devices=DISCRETE.engine, supports_offload=True,
    ),
)  # fmt: skip
BARE_MACHINE = Machine(host=HOST)

SPEC = ModelSpec(
    path="/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf",
    files=("/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf",), fingerprint="f1", arch="qwen2",
    name="Qwen2.5 7B Instruct", n_layer=N_LAYER, n_embd=3584, n_vocab=152064, n_ctx_train=32768,
    n_head=(28,) * N_LAYER, n_head_kv=(4,) * N_LAYER, n_embd_head_k=(128,) * N_LAYER,
    n_embd_head_v=(128,) * N_LAYER, chat_template="{{ messages }}", file_bytes=4683 * MIB,
    weights_bytes=4460 * MIB, tensors=(), ftype="Q4_K_M",
)  # fmt: skip

BAD_TEMPLATE = TemplateChecked(
    template="text",
    findings=(
        TemplateFinding(
            error=ErrorInfo(
                code="unknown_markers", message="The template writes markers the model lacks.",
                hint="Choose another template.",
            ),
            stop="<|im_end|>",
        ),
    ),
)  # fmt: skip


def settings(n_gpu_layers: int, n_ubatch: int = 512, n_ctx: int = 4096) -> Settings:
    """Return settings of the made-up search."""
    return Settings(
        n_gpu_layers=n_gpu_layers, n_ctx=n_ctx, n_ubatch=n_ubatch, flash_attn=FlashAttn.ON,
        n_threads=8, devices=("CUDA0",) if n_gpu_layers else (),
    )  # fmt: skip


def gpu_sample(t_ns: int, step: int) -> GpuSample:
    """Return a reading that moves a little with ``step``."""
    wave = random.Random(step)
    busy = 40 + 30 * ((step // 9) % 2) + wave.uniform(-8, 8)
    return GpuSample(
        key=GPU_KEY, t_ns=t_ns, power_state=PowerState.AWAKE, busy_pct=busy,
        vram_used_bytes=int((1.1 + 0.01 * (step % 7) + (3.9 if step > 20 else 0)) * GIB),
        temp_c=58 + busy / 8, power_w=35 + busy * 0.7, power_limit_w=115.0,
        clock_mhz=1400 + 8 * busy, throttle=(),
        processes=(
            GpuProcess(pid=4021, name="llama worker", vram_bytes=3900 * MIB),
            GpuProcess(pid=1203, name="Xorg", vram_bytes=310 * MIB),
        ),
    )  # fmt: skip


def asleep_sample(t_ns: int) -> GpuSample:
    """Return the reading of a GPU that sleeps."""
    return GpuSample(key=ASLEEP_KEY, t_ns=t_ns, power_state=PowerState.ASLEEP)


def host_sample(t_ns: int, step: int) -> HostSample:
    """Return a reading of CPU and RAM."""
    wave = random.Random(step)
    return HostSample(
        t_ns=t_ns, cpu_busy_pct=18 + wave.uniform(0, 20), power_source=PowerSource.AC,
        ram_available_bytes=int((21 - wave.uniform(0, 0.4)) * GIB), cpu_temp_c=61.0,
    )  # fmt: skip


def memory(n_gpu_layers: int, n_ctx: int) -> MemoryEstimate:
    """Return what the made-up model needs."""
    share = n_gpu_layers / (N_LAYER + 1)
    kv = n_ctx * N_LAYER * 4 * 128 * 2 * 2
    gpu = DeviceMemory(
        device="CUDA0", weights_bytes=int(4200 * MIB * share), kv_cache_bytes=int(kv * share),
        compute_bytes=304 * MIB, output_bytes=0, driver_context_bytes=530 * MIB,
        growth_bytes=250 * MIB,
        total_bytes=int(4200 * MIB * share) + int(kv * share) + 1084 * MIB,
        free_bytes=7 * GIB, headroom_bytes=256 * MIB, verdict=Verdict.FITS,
    )  # fmt: skip
    host = DeviceMemory(
        device="host", weights_bytes=int(4460 * MIB * (1 - share)) + 300 * MIB,
        kv_cache_bytes=int(kv * (1 - share)), compute_bytes=20 * MIB,
        total_bytes=int(4460 * MIB * (1 - share)) + int(kv * (1 - share)) + 320 * MIB,
        free_bytes=21 * GIB, verdict=Verdict.FITS,
    )  # fmt: skip
    return MemoryEstimate(
        devices=(gpu, host), source=MemorySource.FORMULA, verdict=Verdict.FITS, elapsed_ms=0.4,
        max_error_pct=5.0,
    )  # fmt: skip


def trial(
    load_id: int, asked: Settings, decode_tok_s: float | None, *, stage: str = "layers",
    depth: int = 2048, outcome: Outcome = Outcome.OK,
) -> Trial:  # fmt: skip
    """Return a finished trial with a little scatter."""
    # Not of all settings: one more of them would change every number the tests look for.
    noise = random.Random(f"{asked.n_gpu_layers} {asked.n_ubatch} {depth} {decode_tok_s}")
    work = Workload(n_prompt=512, n_gen=64, depth=depth)
    request = TrialRequest(stage=stage, settings=asked, workload=work)
    if decode_tok_s is None:
        return Trial(request=request, load_id=load_id, outcome=outcome, elapsed_s=4.0)
    prefill_tok_s = 380 + 60 * asked.n_gpu_layers + asked.n_ubatch * 0.4
    decode, prefill = (
        tuple(
            Sample(n_tok=n, ns=int(n / speed * 1e9 * noise.uniform(0.985, 1.015))) for _ in range(4)
        )
        for n, speed in ((64, decode_tok_s), (512, prefill_tok_s))
    )
    return Trial(
        request=request, load_id=load_id, outcome=outcome, effective=asked, decode=decode,
        prefill=prefill, device_bytes=memory(asked.n_gpu_layers, 4096).device_bytes(),
        elapsed_s=9.0,
    )  # fmt: skip


TRIALS = (
    trial(1, settings(28), 39.8),
    trial(2, settings(29), 31.0, outcome=Outcome.SPILLED),
    trial(3, settings(14), 13.9),
    trial(4, settings(24), 26.4),
    trial(5, settings(27), 36.1),
    trial(6, settings(29, 1024), None, outcome=Outcome.OUT_OF_MEMORY),
    trial(7, settings(28, 1024), 39.6, stage="knobs"),
    trial(7, settings(28), 42.6, stage="context", depth=0),
    trial(7, settings(28), 38.2, stage="context", depth=3840),
    trial(8, settings(0), 8.4, stage="baseline"),
    trial(9, settings(25), 29.1, stage="baseline"),
)


REASONS = (
    Reason(code="auto_fit_gain", data={"n_gpu_layers": 25, "gain_pct": 36}),
    Reason(code="spill_seen", data={"n_gpu_layers": 29, "growth_mib": 212, "loss_pct": 28}),
    Reason(code="gpu_gain", data={"factor": 4.6}),
)


def recommended(index: int, request_s: float, profile_id: str | None = None) -> Recommended:
    """Return a trial as a recommendation."""
    found = TRIALS[index]
    return Recommended(
        settings=found.request.settings, prefill_tok_s=rate(found.prefill),
        decode_tok_s=rate(found.decode), request_s=request_s, device_bytes=found.device_bytes,
        trial=index, profile_id=profile_id,
    )  # fmt: skip


PLAN = SweepPlan(
    request=SweepRequest(),
    space=SearchSpace(
        model=SearchModel(
            name=SPEC.name, n_layer=N_LAYER, n_ctx_train=32768, file_bytes=SPEC.file_bytes
        ),
        host=SearchHost(cores_physical=8, cores_logical=16, ram_bytes=32 * GIB),
        devices=(
            SearchDevice(
                id="CUDA0", kind="discrete", backend="CUDA", total_bytes=8 * GIB,
                free_bytes=7 * GIB,
            ),
        ),
        load_s=2.5,
    ),
    workload=WORKLOAD, n_ctx=4096,
    stages=(
        PlannedStage(stage="auto_fit", min_loads=0, max_loads=1),
        PlannedStage(stage="layers", min_loads=2, max_loads=6),
        PlannedStage(stage="ubatch", min_loads=0, max_loads=0),
        PlannedStage(stage="context_curve", min_loads=0, max_loads=0),
        PlannedStage(stage="finals", min_loads=0, max_loads=2),
    ),
    max_n_gpu_layers=29, time_low_s=110.0, time_high_s=260.0,
)  # fmt: skip


def result(status: SweepStatus = SweepStatus.COMPLETE, n_trials: int = len(TRIALS)) -> SweepResult:
    """Return the answer of the made-up search."""
    whole = status is SweepStatus.COMPLETE
    return SweepResult(
        status=status,
        recommended=recommended(0, 6.9, "ab12") if n_trials else None,
        knee=recommended(4, 7.6) if whole else None,
        cliff=Cliff(knob="n_gpu_layers", last_good=28, first_bad=29, kind="spill", loss_frac=0.22),
        baseline_auto_fit=recommended(10, 9.4) if whole else None,
        baseline_cpu=recommended(9, 31.8) if whole else None,
        context_curve=tuple(
            ContextPoint(
                n_ctx=4096, depth=d, fits=True, meets_floor=True,
                decode_tok_s=Rate(median=v, low=v - 0.5, high=v + 0.5),
            )
            for d, v in ((0, 42.6), (2048, 39.8), (3840, 38.2))
        ) if whole else (),
        trials=TRIALS[:n_trials], n_model_loads=min(9, n_trials), measured_s=143.0,
        reasons=REASONS if whole else (),
    )  # fmt: skip


def events() -> tuple[object, ...]:
    """Return the whole search as its events."""
    found: list[object] = [SweepPlanned(plan=PLAN)]
    for index, done in enumerate(TRIALS):
        found += [
            TrialStarted(index=index, request=done.request),
            TrialProgress(phase="load", frac=0.4),
            TrialProgress(phase="decode", frac=0.7),
            TrialFinished(index=index, trial=done),
        ]
    return (*found, SweepFinished(result=result()))
