"""Small machines, plans and trials that make one rule of the advice fire, or just not."""

from typing import Any

import msgspec

from app.advice.rule import Situation
from app.domain.machine import (
    DriverReset,
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
    TimeoutValue,
    WindowsSettings,
)
from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import (
    SearchDevice,
    SearchHost,
    SearchModel,
    SearchSpace,
    SweepPlan,
    SweepRequest,
)
from app.domain.trial import Sample, TelemetryWindow, Trial, TrialRequest, Workload
from app.domain.units import GIB, MIB, NS_PER_S

CARD = "NVIDIA GeForce RTX 4070"
OTHER = "NVIDIA GeForce RTX 3060"


def host(**fields: Any) -> HostInfo:
    """A healthy desktop's host."""
    values: dict[str, Any] = {
        "os": "linux",
        "cpu_name": "AMD Ryzen 7 7700X",
        "cores_physical": 8,
        "cores_logical": 16,
        "ram_bytes": 32 * GIB,
        "ram_available_bytes": 24 * GIB,
        "power_source": PowerSource.AC,
        "power_mode": "balanced",
        "cpu_features": ("avx", "avx2"),
        "numa_nodes": 1,
        "ram_modules": 2,
        "ram_slots": 4,
        "is_laptop": False,
    }
    return HostInfo(**(values | fields))


def info(n: int = 1, **fields: Any) -> GpuInfo:
    """An NVIDIA card in good order."""
    values: dict[str, Any] = {
        "probe": "nvml",
        "uuid": f"GPU-{n}",
        "pci_id": f"0000:0{n}:00.0",
        "name": CARD,
        "vendor": "nvidia",
        "kind": GpuKind.DISCRETE,
        "driver": "nvidia 580.95.05",
        "vram_total_bytes": 12 * GIB,
        "drives_display": True,
        "pcie_gen_max": 4,
        "pcie_width_max": 16,
        "pcie_gen_device_max": 4,
        "power_limit_default_w": 200.0,
        "power_limit_settable": True,
        "temp_slowdown_c": 90.0,
        "resizable_bar": True,
    }
    return GpuInfo(**(values | fields))


def device(name: str = "CUDA0", **fields: Any) -> EngineDevice:
    """The engine's name for a card."""
    values: dict[str, Any] = {
        "backend": name.rstrip("0123456789"),
        "description": CARD,
        "kind": GpuKind.DISCRETE,
        "total_bytes": 12 * GIB,
        "free_bytes": 11 * GIB,
    }
    return EngineDevice(name=name, **(values | fields))


def engine(*backends: str) -> EngineInfo:
    """An engine with these backends that lists no device."""
    return EngineInfo(
        version="1",
        llama_version="1",
        backends=("CPU", *backends),
        devices=(),
        supports_offload=True,
    )


def gpu(n: int = 1, *devices: EngineDevice, **fields: Any) -> Gpu:
    """A card that the engine uses, unless it is told not to by ``devices=()``."""
    known = info(n, **fields)
    return Gpu(key=known.key, info=known, engine=devices or (device(f"CUDA{n - 1}"),))


def igpu(**fields: Any) -> Gpu:
    """A processor's GPU."""
    values: dict[str, Any] = {
        "uuid": None,
        "pci_id": "0000:00:02.0",
        "name": "Intel UHD",
        "vendor": "intel",
        "kind": GpuKind.INTEGRATED,
        "driver": "i915",
        "drives_display": True,
        "vram_total_bytes": None,
        "resizable_bar": None,
        "pcie_gen_max": None,
        "power_limit_settable": False,
    }
    known = info(9, **(values | fields))
    own = device("Vulkan0", kind=GpuKind.INTEGRATED, description=known.name)
    return Gpu(key=known.key, info=known, engine=(own,))


def machine(*gpus: Gpu, engine: bool | EngineInfo = True, **fields: Any) -> Machine:
    """A machine with these GPUs; a plain desktop card without any."""
    shown = gpus or (gpu(),)
    devices = tuple(d for g in shown for d in g.engine)
    build = EngineInfo(
        version="0.3",
        llama_version="b1",
        backends=("CPU", *dict.fromkeys(d.backend for d in devices)),
        devices=devices,
        supports_offload=True,
    )
    known = engine if isinstance(engine, EngineInfo) else build if engine else None
    values: dict[str, Any] = {"host": host(), "engine": known}
    return Machine(gpus=shown, **(values | fields))


def sample(key: str = "GPU-1", **fields: Any) -> GpuSample:
    """A cool, idle card's reading."""
    values: dict[str, Any] = {
        "t_ns": 0,
        "power_state": PowerState.AWAKE,
        "busy_pct": 3.0,
        "vram_used_bytes": 500 * MIB,
        "vram_free_bytes": 11 * GIB,
        "temp_c": 45.0,
        "power_w": 30.0,
        "power_limit_w": 200.0,
        "pcie_gen": 4,
        "pcie_width": 16,
        "throttle": (),
        "processes": (GpuProcess(pid=7, name="shell", vram_bytes=400 * MIB),),
    }
    return GpuSample(key=key, **(values | fields))


def seen(*gpus: Gpu, hosted: HostInfo | None = None, swap: int = 0, **fields: Any) -> Situation:
    """A machine whose first GPU has a reading with ``fields``."""
    built = machine(*gpus, host=hosted or host())
    key = built.gpus[0].key
    return Situation(
        machine=built,
        samples={key: (sample(key, **fields),)},
        host_sample=HostSample(t_ns=0, swap_used_bytes=swap),
    )


def only(*gpus: Gpu, **fields: Any) -> Situation:
    """A machine without any reading."""
    return Situation(machine=machine(*gpus, **fields))


def no_gpus(**fields: Any) -> Situation:
    """A machine without GPUs."""
    plain = msgspec.structs.replace(machine(), gpus=())
    return Situation(machine=msgspec.structs.replace(plain, **fields))


def windows(**timeouts: int) -> WindowsSettings:
    """Windows with its defaults, and the named values set."""
    defaults = {
        "TdrLevel": 3, "TdrDelay": 2, "TdrDdiDelay": 5,
        "TdrLimitTime": 60, "TdrLimitCount": 5, "TdrDebugMode": 2,
    }  # fmt: skip
    values = tuple(
        TimeoutValue(
            name=name,
            effective=timeouts.get(name, default),
            source="registry" if name in timeouts else "default",
        )
        for name, default in defaults.items()
    )
    return WindowsSettings(timeouts=values, gpu_scheduling="default", resets=())


def on_windows(settings: WindowsSettings | None = None, *gpus: Gpu) -> Situation:
    """A Windows machine with these settings."""
    hosted = host(os="windows", windows=settings or windows())
    return Situation(machine=machine(*gpus, host=hosted))


def reset() -> DriverReset:
    """An entry of the event log."""
    return DriverReset(provider="Display", event_id=4101, time_utc="2026-01-02T03:04:05Z")


def plan(
    *parts: DeviceMemory,
    n_ctx: int = 4096,
    layers: int = 33,
    file_bytes: int = 4 * GIB,
    hosted: HostInfo | None = None,
    gpus: tuple[Gpu, ...] = (),
    **model: Any,
) -> Situation:
    """A plan for a 32-layer model on one 12 GiB card."""
    first = MemoryEstimate(devices=parts, source=MemorySource.FORMULA, verdict=Verdict.FITS)
    space = SearchSpace(
        model=SearchModel(name="m", n_layer=32, n_ctx_train=8192, file_bytes=file_bytes, **model),
        host=SearchHost(cores_physical=8, cores_logical=16, ram_bytes=32 * GIB),
        devices=(
            SearchDevice(
                id="CUDA0",
                kind="discrete",
                backend="CUDA",
                total_bytes=12 * GIB,
                free_bytes=11 * GIB,
            ),
        ),
        load_s=1.0,
    )
    made = SweepPlan(
        request=SweepRequest(),
        space=space,
        workload=Workload(),
        n_ctx=n_ctx,
        stages=(),
        max_n_gpu_layers=layers,
        first=first,
        time_low_s=1.0,
        time_high_s=2.0,
    )
    return Situation(machine=machine(*gpus, host=hosted or host()), plan=made)


def need(
    name: str = "CUDA0",
    total: int = 8 * GIB,
    kv: int = GIB,
    verdict: Verdict = Verdict.FITS,
) -> DeviceMemory:
    """What a configuration needs on one device."""
    return DeviceMemory(
        device=name,
        kv_cache_bytes=kv,
        total_bytes=total,
        free_bytes=11 * GIB,
        headroom_bytes=512 * MIB,
        verdict=verdict,
    )


def trial(
    outcome: Outcome = Outcome.OK,
    *,
    prefill_tok_s: float = 2000.0,
    n_prompt: int = 512,
    growth: int | None = 0,
    window: TelemetryWindow | None = None,
    **settings: Any,
) -> Trial:
    """A finished trial."""
    values: dict[str, Any] = {"n_gpu_layers": 33, "devices": ("CUDA0",)}
    request = TrialRequest(
        stage="layers",
        settings=Settings(**(values | settings)),
        workload=Workload(n_prompt=n_prompt, n_gen=64),
    )
    ns = int(n_prompt / prefill_tok_s * NS_PER_S)
    good = outcome in {Outcome.OK, Outcome.THROTTLED, Outcome.SPILLED}
    return Trial(
        request=request,
        load_id=1,
        outcome=outcome,
        prefill=(Sample(n_tok=n_prompt, ns=ns),) if good else (),
        decode=(Sample(n_tok=64, ns=NS_PER_S),) if good else (),
        shared_growth_bytes=growth,
        telemetry=window,
    )


def crashed(ended_utc: str) -> Trial:
    """A trial of five seconds whose engine crashed at its end."""
    return msgspec.structs.replace(trial(Outcome.CRASHED), ended_utc=ended_utc, elapsed_s=5.0)


def loaded(growth: dict[str, int]) -> Trial:
    """A trial that loaded 6 GiB onto CUDA0 while memory rose by ``growth`` per GPU."""
    made = trial(window=watched(vram_growth_bytes=growth))
    return msgspec.structs.replace(made, load_s=2.0, device_bytes={"CUDA0": 6 << 30})


def measured(*trials: Trial, situation: Situation | None = None) -> Situation:
    """A finished search on a plain desktop."""
    base = situation or plan(need())
    return Situation(machine=base.machine, plan=base.plan, trials=trials)


def watched(**fields: Any) -> TelemetryWindow:
    """What the probes saw during a trial."""
    return TelemetryWindow(n_samples=10, **fields)
