"""For each rule of the advice: a situation in which it fires, and the nearest one where not."""

from typing import Any

import msgspec

from app.advice.rule import Situation
from app.domain.errors import ErrorInfo
from app.domain.machine import Gpu, GpuKind, GpuProcess, PowerSource, PowerState, TimeoutValue
from app.domain.memory import Verdict
from app.domain.outcome import Outcome
from app.domain.units import GIB, MIB
from tests.fakes import situations as s

HOT = s.watched(throttle={"GPU-1": ("hw_thermal",)}, temp_max_c={"GPU-1": 91.0})
STARVED = s.watched(busy_pct={"GPU-1": 99.0}, mem_busy_pct={"GPU-1": 2.0})
IDLE = s.watched(busy_pct={"GPU-1": 30.0}, mem_busy_pct={"GPU-1": 20.0})
BUSY = s.watched(busy_pct={"GPU-1": 97.0}, mem_busy_pct={"GPU-1": 80.0}, throttle={"GPU-1": ()})
LAPTOP: dict[str, Any] = {"name": f"{s.CARD} Laptop GPU", "power_limit_settable": False}
APU: dict[str, Any] = {"vendor": "amd", "driver": "amdgpu", "vram_total_bytes": 512 * MIB}
ROCM = s.device("ROCm0", kind=GpuKind.INTEGRATED, total_bytes=512 * MIB)
VULKAN = s.device("Vulkan0", kind=GpuKind.INTEGRATED, total_bytes=16 * GIB)
SOFTWARE = Gpu(key="sw", engine=(s.device("Vulkan1", kind=GpuKind.SOFTWARE),))
REMOTE = Gpu(key="rpc", engine=(s.device("RPC0", kind=GpuKind.REMOTE, endpoint="a:1"),))
STRANGER = Gpu(key="x", engine=(s.device("Vulkan2"),), unmatched="no_probe_sees_it")
UNUSED = Gpu(key="GPU-1", info=s.info(), engine=())
BARE = msgspec.structs.replace(s.igpu(**APU, shared_total_bytes=16 * GIB), engine=(ROCM, VULKAN))
TWICE = msgspec.structs.replace(BARE, engine=(VULKAN,))

# 64 tokens a second of 4 GiB are 275 GB/s
AT_CEILING = s.plan(gpus=(s.gpu(memory_gb_s=300.0),), bits_per_weight=8.5)
FAR_BELOW = s.plan(gpus=(s.gpu(memory_gb_s=1008.0),), bits_per_weight=8.5)
FOUR_BITS = s.plan(gpus=(s.gpu(memory_gb_s=900.0),), bits_per_weight=4.8)
RESET = s.on_windows(msgspec.structs.replace(s.windows(), resets=(s.reset(),)))
TWO = s.only(s.gpu(), s.gpu(2, s.device("CUDA1")))

CASES: dict[str, tuple[Situation, Situation]] = {
    "no_gpu": (s.no_gpus(), s.only()),
    "engine_missing": (
        s.only(engine_problem=ErrorInfo(code="crashed", message="It crashed.", hint="Reinstall.")),
        s.only(),
    ),
    "engine_sees_no_gpu": (
        s.only(UNUSED, engine=s.engine("Vulkan")),
        s.only(Gpu(key="G", info=s.info(mig="parent"))),
    ),
    "cuda_without_card": (
        s.only(Gpu(key="GPU-1", info=s.info(driver="nvidia 580.1")), engine=s.engine("CUDA")),
        s.only(Gpu(key="GPU-1", info=s.info(driver="nvidia 580.1")), engine=s.engine("Vulkan")),
    ),
    "given_to_guest": (s.only(s.gpu(driver="vfio-pci")), s.only(s.gpu(driver="nouveau"))),
    "unmatched_device": (s.only(s.gpu(), STRANGER), s.only(s.gpu(), SOFTWARE)),
    "software_device": (s.only(s.gpu(), SOFTWARE), s.only()),
    "remote_device": (s.only(REMOTE), s.only()),
    "driver_mismatch": (
        s.only(unavailable={"nvml": "version_mismatch"}),
        s.only(unavailable={"nvml": "lib_missing"}),
    ),
    "gpu_lost": (
        s.seen(power_state=PowerState.AWAKE, missing={"busy_pct": "lost"}),
        s.seen(missing={"busy_pct": "not_supported"}),
    ),
    "no_nvidia_driver": (s.only(s.gpu(driver="nouveau")), s.only(s.gpu(driver="nvidia"))),
    "card_not_answering": (
        s.only(unavailable={"nvml": "no_data"}),
        s.only(s.gpu(driver="nouveau"), unavailable={"nvml": "no_data"}),
    ),
    "old_nvidia_driver": (
        s.only(s.gpu(driver="nvidia 470.256.02")),
        s.only(s.gpu(driver="nvidia 31.0.15.5244")),
    ),
    "nvidia_without_cuda": (
        s.only(s.gpu(1, s.device("Vulkan0"))),
        s.only(s.gpu(1, s.device("CUDA0"), s.device("Vulkan0"))),
    ),
    "hybrid": (s.only(s.gpu(), s.igpu()), s.only(s.igpu())),
    "gpu_asleep": (s.seen(power_state=PowerState.ASLEEP), s.seen()),
    "display_on_card": (
        s.seen(s.gpu(), s.igpu(), vram_used_bytes=700 * MIB),
        s.seen(s.gpu(drives_display=False), s.igpu(), vram_used_bytes=700 * MIB),
    ),
    "dgpu_switched_off": (
        s.only(s.igpu(), host=s.host(gpu_mode="integrated")),
        s.only(s.igpu(), host=s.host(gpu_mode="hybrid")),
    ),
    "mux_on_card": (
        s.only(host=s.host(gpu_mode="discrete", is_laptop=True)),
        s.only(host=s.host(gpu_mode="discrete", is_laptop=False)),
    ),
    "external_gpu": (s.only(s.gpu(external=True)), s.only(s.gpu(external=False))),
    "mig_parent": (s.only(s.gpu(mig="parent")), s.only(s.gpu(mig="instance"))),
    "unified_memory": (
        s.only(s.igpu(vendor="nvidia", unified_memory=True)),
        s.only(s.igpu(unified_memory=True)),
    ),
    "carve_out": (s.only(BARE), s.only(BARE, s.gpu())),
    "backend_sees_carve_out": (s.only(BARE), s.only(TWICE)),
    "unequal_cards": (
        s.only(s.gpu(), s.gpu(2, name=s.OTHER)),
        s.only(s.gpu(), s.gpu(2)),
    ),
    "equal_cards": (s.only(s.gpu(), s.gpu(2)), s.only(s.gpu())),
    "on_battery": (
        s.only(host=s.host(power_source=PowerSource.BATTERY, battery_pct=50.0)),
        s.only(host=s.host(power_source=PowerSource.UNKNOWN)),
    ),
    "saver_mode": (s.only(host=s.host(power_mode="saver")), s.only()),
    "power_limit_fixed": (s.seen(s.gpu(**LAPTOP)), s.seen(s.gpu(**LAPTOP), power_limit_w=None)),
    "power_limit_lowered": (s.seen(power_limit_w=150.0), s.seen(power_limit_w=199.0)),
    "at_power_limit": (s.seen(throttle=("sw_power_cap",)), s.seen(throttle=None)),
    "too_hot": (s.seen(throttle=("sw_thermal",)), s.seen(throttle=("sw_power_cap",))),
    "near_slowdown": (s.seen(temp_c=86.0), s.seen(temp_c=86.0, temp_margin_c=20.0)),
    "power_brake": (s.seen(throttle=("hw_power_brake",)), s.seen(throttle=("hw_slowdown",))),
    "weak_adapter": (s.seen(adapter="undersized"), s.seen(adapter="ac")),
    "memory_low": (s.seen(vram_free_bytes=500 * MIB), s.seen(vram_free_bytes=520 * MIB)),
    "memory_taken": (
        s.seen(processes=(GpuProcess(pid=1, name="game", vram_bytes=2 * GIB),)),
        s.seen(processes=(GpuProcess(pid=1, name="game", vram_bytes=None),)),
    ),
    "little_ram": (
        s.only(host=s.host(ram_available_bytes=2 * GIB)),
        s.only(host=s.host(ram_available_bytes=None)),
    ),
    "swapping": (s.seen(swap=2 * GIB), s.seen(swap=100 * MIB)),
    "rebar_off_arc": (
        s.only(s.gpu(vendor="intel", driver="xe", resizable_bar=False)),
        s.only(s.gpu(vendor="intel", driver="xe", resizable_bar=None)),
    ),
    "rebar_off": (s.only(s.gpu(resizable_bar=False)), s.only(s.gpu(resizable_bar=True))),
    "narrow_link": (
        s.seen(busy_pct=90.0, pcie_width=4),
        s.seen(busy_pct=0.0, pcie_width=16, pcie_gen=1),
    ),
    "slot_limits": (s.only(s.gpu(pcie_gen_max=3)), s.only(s.gpu(pcie_gen_device_max=None))),
    "no_avx": (
        s.only(host=s.host(cpu_features=())),
        s.only(host=s.host(cpu_features=("neon", "dotprod"))),
    ),
    "no_avx2": (
        s.only(host=s.host(cpu_features=("avx",))),
        s.only(host=s.host(cpu_features=None)),
    ),
    "hybrid_cpu": (
        s.only(host=s.host(cores_performance=6, cores_efficiency=8)),
        s.only(host=s.host(cores_performance=6)),
    ),
    "several_nodes": (s.only(host=s.host(numa_nodes=2)), s.only(host=s.host(numa_nodes=None))),
    "memory_errors": (s.seen(memory_errors=2), s.seen(memory_errors=0)),
    "no_power_plug": (
        s.seen(missing={"busy_pct": "no_power"}),
        s.seen(missing={"busy_pct": "no_permission"}),
    ),
    "damaged_card": (
        s.seen(missing={"busy_pct": "damaged"}),
        s.seen(missing={"busy_pct": "error"}),
    ),
    "no_driver": (
        s.only(
            Gpu(key="A", info=s.info(vendor="amd", missing={"driver": "driver_not_loaded"})),
            engine=s.engine("Vulkan"),
        ),
        s.only(s.gpu(vendor="amd", driver=None, missing={"driver": "driver_not_loaded"})),
    ),
    "driver_unloads": (
        s.only(s.gpu(persistence=False, drives_display=False)),
        s.only(s.gpu(persistence=False, drives_display=True)),
    ),
    "one_memory_module": (
        s.only(host=s.host(ram_modules=1, ram_slots=2)),
        s.only(host=s.host(ram_modules=1, ram_slots=1)),
    ),
    "in_container": (
        s.only(host=s.host(virtualization="container")),
        s.only(host=s.host(virtualization="vm")),
    ),
    "in_wsl": (s.only(host=s.host(virtualization="wsl2")), s.only()),
    "short_compute_timeout": (
        s.only(s.gpu(compute_timeout_ms=2000)),
        s.only(s.gpu(compute_timeout_ms=60_000)),
    ),
    "tdr_off": (s.on_windows(s.windows(TdrLevel=0)), s.on_windows(s.windows(TdrLevel=3))),
    "tdr_no_recovery": (s.on_windows(s.windows(TdrLevel=1)), s.on_windows()),
    "tdr_delay_zero": (
        s.on_windows(s.windows(TdrDelay=0)),
        s.on_windows(s.windows(TdrDelay=0, TdrLevel=0)),
    ),
    "tdr_delay_long": (
        s.on_windows(s.windows(TdrDdiDelay=60)),
        s.on_windows(s.windows(TdrDelay=600, TdrLevel=0)),
    ),
    "tdr_wrong_type": (
        s.on_windows(
            msgspec.structs.replace(
                s.windows(),
                timeouts=(
                    TimeoutValue(name="TdrDelay", found="10", effective=2, source="wrong_type"),
                ),
            )
        ),
        s.on_windows(s.windows(TdrDelay=2)),
    ),
    "tdr_debug_mode": (s.on_windows(s.windows(TdrDebugMode=3)), s.on_windows()),
    "tcc_timeout": (
        s.on_windows(msgspec.structs.replace(s.windows(), tcc_timeout=True)),
        s.on_windows(),
    ),
    "driver_resets": (
        s.on_windows(msgspec.structs.replace(s.windows(), resets=(s.reset(),))),
        s.on_windows(msgspec.structs.replace(s.windows(), resets=None)),
    ),
    "mixed_driver_models": (
        s.only(s.gpu(driver_model="wddm"), s.gpu(2, driver_model="tcc")),
        s.only(s.gpu(driver_model="wddm"), s.gpu(2, driver_model="wddm")),
    ),
    "tcc_model": (s.only(s.gpu(driver_model="tcc")), s.only(s.gpu(driver_model="mcdm"))),
    "silent_spill": (s.only(s.gpu(driver_model="wddm")), s.only()),
    "gpu_preference": (
        s.on_windows(
            msgspec.structs.replace(s.windows(), gpu_preferences={"llama.exe": "power_saving"})
        ),
        s.on_windows(
            msgspec.structs.replace(s.windows(), gpu_preferences={"game.exe": "power_saving"})
        ),
    ),
    "context_takes_layers": (
        s.plan(s.need(kv=4 * GIB), layers=20),
        s.plan(s.need(kv=4 * GIB), layers=33),
    ),
    "context_beyond_training": (s.plan(n_ctx=8193), s.plan(n_ctx=8192)),
    "larger_than_memory": (s.plan(file_bytes=36 * GIB), s.plan(file_bytes=34 * GIB)),
    "fills_ram": (
        s.plan(s.need("host", total=23 * GIB)),
        s.plan(s.need("host", total=20 * GIB)),
    ),
    "few_bits": (
        s.plan(bits_per_weight=3.41, quant="Q3_K_S"),
        s.plan(bits_per_weight=4.25, quant="IQ4_XS"),
    ),
    "near_ceiling": (
        s.measured(s.trial(), situation=AT_CEILING),
        s.measured(s.trial(n_gpu_layers=32), situation=AT_CEILING),
    ),
    "below_ceiling": (
        s.measured(s.trial(), situation=FAR_BELOW),
        s.measured(s.trial(), situation=FOUR_BITS),
    ),
    "barely_fits": (s.plan(s.need(verdict=Verdict.TIGHT)), s.plan(s.need())),
    "battery_search": (
        s.plan(hosted=s.host(power_source=PowerSource.BATTERY)),
        s.only(host=s.host(power_source=PowerSource.BATTERY)),
    ),
    "spilled": (s.measured(s.trial(growth=300 * MIB)), s.measured(s.trial(growth=60 * MIB))),
    "spill_signature": (
        s.measured(s.trial(window=STARVED)),
        s.measured(s.trial(window=BUSY)),
    ),
    "out_of_memory": (
        s.measured(s.trial(Outcome.OUT_OF_MEMORY)),
        s.measured(s.trial(Outcome.LOAD_FAILED)),
    ),
    "device_lost": (
        s.measured(s.trial(Outcome.DEVICE_LOST)),
        s.measured(s.trial(Outcome.OUT_OF_MEMORY)),
    ),
    "reset_in_run": (
        s.measured(s.crashed("2026-01-02T03:04:09Z"), situation=RESET),
        s.measured(s.crashed("2026-01-02T09:00:00Z"), situation=RESET),
    ),
    "wrong_card": (
        s.measured(s.loaded({"GPU-1": MIB, "GPU-2": 900 * MIB}), situation=TWO),
        s.measured(s.loaded({"GPU-1": 900 * MIB, "GPU-2": MIB}), situation=TWO),
    ),
    "card_stayed_empty": (
        s.measured(s.loaded({"GPU-1": MIB}), situation=TWO),
        s.measured(s.loaded({}), situation=TWO),
    ),
    "submission_near_limit": (
        s.measured(s.trial(prefill_tok_s=500.0), situation=s.on_windows()),
        s.measured(
            s.trial(prefill_tok_s=500.0), situation=s.on_windows(s.windows(TdrDelay=10))
        ),
    ),
    "slow_first_token": (
        s.measured(s.trial(prefill_tok_s=200.0)),
        s.measured(s.trial(prefill_tok_s=300.0)),
    ),
    "throttled": (s.measured(s.trial(window=HOT)), s.measured(s.trial(window=BUSY))),
    "disturbed": (
        s.measured(s.trial(window=s.watched(disturbed="other_process"))),
        s.measured(s.trial(window=s.watched())),
    ),
    "gpu_waits": (
        s.measured(s.trial(window=IDLE)),
        s.measured(s.trial(window=IDLE, n_gpu_layers=20)),
    ),
    "low_precision_cache": (
        s.measured(s.trial(type_k="q4_0", type_v="q4_0")),
        s.measured(s.trial(type_k="q8_0", type_v="q8_0")),
    ),
}  # fmt: skip
