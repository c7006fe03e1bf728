"""GPUs through Windows itself: identity of all, memory and busy time by performance counters."""

import time
from collections.abc import Callable

from app.domain.machine import GpuInfo, GpuProcess, GpuSample, PowerState, ProbeUnavailable
from probes.reading import Absence, gpu_sample, scaled
from probes.windows import counters as counting
from probes.windows.adapters import device_of, identity, is_hardware, once, undriven
from probes.windows.facts import AdapterFacts, Counters, DeviceFacts, Windows

SENSORS = ("temp_c", "clock_memory_mhz")


class WindowsProbe:
    """Every hardware adapter that DXGI lists."""

    name = "windows"

    def __init__(
        self,
        windows: Windows,
        process_name: Callable[[int], str | None],
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """Look for adapters.

        Args:
            windows: The door.
            process_name: Gives the program name of a pid.
            clock_ns: Monotonic clock.

        Raises:
            ProbeUnavailable: This is not Windows, or it lists no hardware adapter.
        """
        self._windows, self._process_name, self._clock_ns = windows, process_name, clock_ns
        found = windows.adapters()
        if isinstance(found, Absence):
            raise ProbeUnavailable(found.value)
        self._adapters = tuple(a for a in once(found) if is_hardware(a))
        self._infos: dict[str, GpuInfo] = {}
        self._undriven: tuple[GpuInfo, ...] = ()
        if not self._adapters and not undriven((), self._devices(), self.name):
            raise ProbeUnavailable(Absence.NO_DATA.value)

    def identify(self) -> tuple[GpuInfo, ...]:
        """Return every adapter. Asking wakes none: DXGI answers from the driver's store."""
        known = self._devices()
        self._undriven = undriven(self._adapters, known, self.name)
        infos = list(self._undriven)
        for adapter in self._adapters:
            device = device_of(adapter, self._adapters, known)
            info = identity(adapter, device, self.name)
            self._infos[adapter.luid] = info
            infos.append(info)
        return tuple(infos)

    def sample(self) -> tuple[GpuSample, ...]:
        """Return one reading per adapter."""
        if not self._infos and self._adapters:
            self.identify()
        now, counters = self._clock_ns(), self._windows.counters()
        absent = tuple(
            gpu_sample(i.key, now, PowerState.UNKNOWN, {}, default=Absence.DRIVER_NOT_LOADED)
            for i in self._undriven
        )
        return absent + tuple(self._sample(a, counters, now) for a in self._adapters)

    def close(self) -> None:
        """Release the counters."""
        self._windows.close()

    def _devices(self) -> tuple[DeviceFacts, ...]:
        devices = self._windows.devices()
        return () if isinstance(devices, Absence) else devices

    def _sample(
        self, adapter: AdapterFacts, counters: Counters | Absence, now_ns: int
    ) -> GpuSample:
        info = self._infos[adapter.luid]
        if isinstance(counters, Absence):
            return gpu_sample(info.key, now_ns, PowerState.UNKNOWN, {}, default=counters)
        total = info.vram_total_bytes
        used = counting.usage(counters, counting.DEDICATED, adapter.luid)
        busy = counting.busy_pct(counters, adapter.luid)
        values: dict[str, object] = {
            "busy_pct": busy,
            "vram_used_bytes": used,
            "vram_free_bytes": used if isinstance(used, Absence) or total is None else total - used,
            "shared_used_bytes": counting.usage(counters, counting.SHARED, adapter.luid),
            "processes": self._named(counting.processes(counters, adapter.luid)),
        }
        # Its sensors may wake a card that sleeps, and Windows does not say which one does.
        awake = bool(adapter.n_outputs) or (isinstance(busy, float) and busy > 0)
        values |= self._sensors(adapter) if awake else dict.fromkeys(SENSORS, Absence.RELEASED)
        return gpu_sample(
            info.key,
            now_ns,
            PowerState.AWAKE,
            values,
            vram_total_bytes=total,
            shared_total_bytes=info.shared_total_bytes,
        )

    def _sensors(self, adapter: AdapterFacts) -> dict[str, object]:
        found = self._windows.performance(adapter.luid)
        if isinstance(found, Absence):
            return dict.fromkeys(SENSORS, found)
        # A zero stands for "no sensor".
        return {
            "temp_c": scaled(found.temperature_dc or Absence.NOT_SUPPORTED, 0.1),
            "clock_memory_mhz": scaled(found.memory_hz or Absence.NOT_SUPPORTED, 1e-6),
        }

    def _named(self, found: dict[int, tuple[int, int]] | Absence) -> object:
        if isinstance(found, Absence):
            return found
        return tuple(
            GpuProcess(
                pid=pid, name=self._process_name(pid), vram_bytes=used[0], shared_bytes=used[1]
            )
            for pid, used in found.items()
        )
