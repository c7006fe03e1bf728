"""What watching costs: CPU share of sampling eight simulated GPUs (or this machine's) at 1 Hz.

The simulated GPUs run the real NVIDIA probe, telemetry thread, ring buffers and a subscriber
against a scripted NVML, so this is all of our own cost and none of the driver's. With ``--live``
the probes of this machine are measured instead, driver calls included, call by call.

    python benchmarks/probe_cost.py [--seconds 20] [--live] [--compare]

``--compare`` prints one reading of the first NVIDIA card beside nvidia-smi's of the same moment.
"""

import argparse
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from app.domain.machine import GpuInfo, GpuProbe, GpuSample, HostProbe, HostSample
from app.telemetry.telemetry import Telemetry
from probes import registry
from probes.nvidia import NvidiaProbe
from probes.nvml import LiveNvml
from probes.reading import Absence
from probes.tree import FileTree

N_GPUS = 8
GOAL_PCT = 1.0
MIB = 1 << 20
CALLS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("nvmlDeviceGetUtilizationRates", ()),
    ("nvmlDeviceGetMemoryInfo", (0x02000028,)),
    ("nvmlDeviceGetTemperatureV", (0,)),
    ("nvmlDeviceGetPowerUsage", ()),
    ("nvmlDeviceGetEnforcedPowerLimit", ()),
    ("nvmlDeviceGetClockInfo", (0,)),
    ("nvmlDeviceGetCurrentClocksEventReasons", ()),
    ("nvmlDeviceGetFieldValues", (82,)),
    ("nvmlDeviceGetMarginTemperature", ()),
    ("nvmlDeviceGetTotalEnergyConsumption", ()),
    ("nvmlDeviceGetBAR1MemoryInfo", ()),
    ("nvmlDeviceGetCudaComputeCapability", ()),
    ("nvmlDeviceGetMigMode", ()),
    ("nvmlDeviceGetFanSpeed", ()),
    ("nvmlDeviceGetCurrPcieLinkGeneration", ()),
    ("nvmlDeviceGetCurrPcieLinkWidth", ()),
    ("nvmlDeviceGetComputeRunningProcesses_v3", ()),
    ("nvmlDeviceGetGraphicsRunningProcesses_v3", ()),
    ("nvmlDeviceGetFieldValues", (74,)),
    ("nvmlDeviceGetFieldValues", (269,)),
    ("nvmlDeviceGetViolationStatus", (0,)),
    ("nvmlDeviceGetProcessUtilization", (0,)),
    ("nvmlDeviceGetFanSpeed_v2", (0,)),
    ("nvmlDeviceGetFanSpeedRPM", ()),
    ("nvmlDeviceGetPcieSpeed", ()),
    ("nvmlDeviceGetPersistenceMode", ()),
    ("nvmlDeviceGetNvLinkState", (0,)),
    ("nvmlDeviceGetPowerMizerMode_v1", ()),
    ("nvmlDeviceGetTotalEccErrors", (1, 0)),
    ("nvmlDeviceGetPcieThroughput", (0,)),
)


Reading = Callable[[GpuInfo, GpuSample], object]
SMI_FIELDS: tuple[tuple[str, Reading], ...] = (
    ("utilization.gpu", lambda _i, s: s.busy_pct),
    ("utilization.memory", lambda _i, s: s.mem_busy_pct),
    ("memory.total", lambda i, _s: mib(i.vram_total_bytes)),
    ("memory.used", lambda _i, s: mib(s.vram_used_bytes)),
    ("memory.free", lambda _i, s: mib(s.vram_free_bytes)),
    ("temperature.gpu", lambda _i, s: s.temp_c),
    ("temperature.memory", lambda _i, s: s.temp_memory_c),
    ("power.draw", lambda _i, s: s.power_w),
    ("enforced.power.limit", lambda _i, s: s.power_limit_w),
    ("power.min_limit", lambda i, _s: i.power_limit_min_w),
    ("power.max_limit", lambda i, _s: i.power_limit_max_w),
    ("clocks.sm", lambda _i, s: s.clock_mhz),
    ("clocks.mem", lambda _i, s: s.clock_memory_mhz),
    ("clocks_event_reasons.active", lambda _i, s: ",".join(s.throttle or ()) or "none"),
    ("pcie.link.gen.current", lambda _i, s: s.pcie_gen),
    ("pcie.link.width.current", lambda _i, s: s.pcie_width),
    ("pcie.link.gen.max", lambda i, _s: i.pcie_gen_max),
    ("compute_cap", lambda i, _s: i.compute_capability),
    ("mig.mode.current", lambda i, _s: i.mig),
    ("driver_version", lambda i, _s: i.driver),
    ("pci.bus_id", lambda i, _s: i.pci_id),
)
"""nvidia-smi's name → our value in its unit."""


def mib(n_bytes: int | None) -> int | None:
    """Return whole MiB."""
    return None if n_bytes is None else n_bytes >> 20


class SimulatedNvml:
    """Eight busy cards whose answers take no time."""

    def start(self) -> Absence | None:
        """Work at once."""
        return None

    def stop(self) -> None:
        """Hold nothing."""

    def query(self, function: str, *_args: int, device: str | None = None) -> Any:
        """Return an answer of the right shape."""
        answers: dict[str, Any] = {
            "nvmlDeviceGetCount": N_GPUS,
            "nvmlDeviceGetName": "Simulated GPU",
            "nvmlDeviceGetUUID": f"GPU-{device}",
            "nvmlDeviceGetUtilizationRates": {"gpu": 97, "memory": 60},
            "nvmlDeviceGetMemoryInfo": {"total": 24576 * MIB, "used": 9 * MIB, "free": 99 * MIB},
            "nvmlDeviceGetCurrentClocksEventReasons": 4,
            "nvmlDeviceGetComputeRunningProcesses_v3": [{"pid": 1, "usedGpuMemory": MIB}],
            "nvmlDeviceGetGraphicsRunningProcesses_v3": [],
        }
        return answers.get(function, 50)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each measurement")
    parser.add_argument("--live", action="store_true", help="measure this machine's own probes")
    parser.add_argument("--compare", action="store_true", help="print values beside nvidia-smi's")
    args = parser.parse_args()
    if args.compare:
        compare()
        return
    host: HostProbe | None = None
    gpus: tuple[GpuProbe, ...]
    if args.live:
        print_call_costs()
        probes = registry.detect()
        host, gpus = probes.host, probes.gpus
    else:
        gpus = (NvidiaProbe(FileTree(), SimulatedNvml(), lambda _pid: "program"),)
    shown, n_shown = share_pct(gpus, host, 1.0, args.seconds)
    print(f"sampling at 1 Hz: {shown:.3f} % of one core, {n_shown} samples, goal <= {GOAL_PCT} %")
    if not args.live:
        gpus = (NvidiaProbe(FileTree(), SimulatedNvml(), lambda _pid: "program"),)
        hidden, n_hidden = share_pct(gpus, None, None, args.seconds / 4)
        print(f"paused (hidden): {hidden:.3f} % of one core, {n_hidden} samples, goal ~0 %")
    if shown > GOAL_PCT:
        raise SystemExit(1)


def compare() -> None:
    """Print our reading and nvidia-smi's, both in nvidia-smi's units."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise SystemExit("nvidia-smi is not there")
    nvml = next(p for p in registry.detect().gpus if p.name == "nvml")
    info = nvml.identify()[0]
    nvml.sample()  # utilisation needs a moment of history
    time.sleep(1.0)
    sample = nvml.sample()[0]
    fields = [name for name, _ in SMI_FIELDS]
    command = [
        program,
        f"--query-gpu={','.join(fields)}",
        "--format=csv,noheader,nounits",
        "-i",
        "0",
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    nvml.close()
    print(f"{'nvidia-smi':>34} {'ours':>14} {'theirs':>14}")
    for (name, ours), theirs in zip(SMI_FIELDS, answer.strip().split(", "), strict=True):
        value = ours(info, sample)
        shown = "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
        print(f"{name:>34} {shown:>14} {theirs:>14}")


def share_pct(
    gpus: tuple[GpuProbe, ...], host: HostProbe | None, interval_s: float | None, seconds: float
) -> tuple[float, int]:
    """Return the CPU share of telemetry, per cent of one core, and the number of samples."""
    seen: list[GpuSample | HostSample] = []
    for probe in gpus:
        probe.identify()
    telemetry = Telemetry(gpus, host, interval_s=interval_s)
    telemetry.subscribe(lambda _key, sample: seen.append(sample))
    telemetry.start()
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    time.sleep(seconds)
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    telemetry.stop()
    return 100 * cpu_s / wall_s, len(seen)


def print_call_costs() -> None:
    """Print the median time of each NVML call on the first GPU, and of whole samples."""
    nvml = LiveNvml()
    started = time.perf_counter()
    problem = nvml.start()
    print(f"nvmlInit: {problem or 'ok'}, {1e3 * (time.perf_counter() - started):.1f} ms")
    if problem is None:
        for function, arguments in CALLS:
            answer, us = timed(partial(nvml.query, function, *arguments, device="index:0"))
            print(f"{us:10.1f} us  {function}{arguments}  {answer if is_short(answer) else '...'}")
        nvml.stop()
    for probe in registry.detect().gpus:
        probe.identify()
        _, us = timed(probe.sample)
        print(f"{us:10.1f} us  {probe.name}: one sample of every GPU")
        probe.close()


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the answer and the median time of 9 calls, microseconds."""
    times = []
    for _ in range(9):
        started = time.perf_counter_ns()
        answer = call()
        times.append((time.perf_counter_ns() - started) / 1000)
    return answer, statistics.median(times)


def is_short(answer: object) -> bool:
    """Whether an answer fits on the line."""
    return isinstance(answer, int | float | str)


if __name__ == "__main__":
    main()
