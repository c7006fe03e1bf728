"""Stands in for ``pynvml`` in the helper: one card whose driver can be made odd."""
# ruff: noqa: N802 - the names are NVML's own

from typing import Any


class NVMLError(Exception):
    """An NVML failure with its code."""

    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


NOT_SUPPORTED = 3
NO_PERMISSION = 4


class _Pci:
    def __init__(self, bus_id: str) -> None:
        self.busId = bus_id.encode()


class FakeNvml:
    """One card; limits in mW. ``calls`` lists every call that sets something."""

    NVMLError = NVMLError

    def __init__(self, **changes: Any) -> None:
        self.bus_id = "00000000:01:00.0"
        self.uuid = "GPU-1"
        self.limit = 350_000
        self.constraints: tuple[int, int] | None = (100_000, 385_000)
        self.default = 350_000
        self.mig = 0
        self.max_clock = 2100
        self.limit_readable = True
        self.set_error: int | None = None
        self.applies = True
        self.calls: list[tuple[str, tuple[int, ...]]] = []
        for name, value in changes.items():
            setattr(self, name, value)

    def nvmlInit(self) -> None:
        pass

    def nvmlShutdown(self) -> None:
        pass

    def nvmlDeviceGetHandleByPciBusId(self, bus_id: bytes) -> str:
        return bus_id.decode()

    def nvmlDeviceGetPciInfo(self, _handle: str) -> _Pci:
        return _Pci(self.bus_id)

    def nvmlDeviceGetUUID(self, _handle: str) -> str:
        return self.uuid

    def nvmlDeviceGetPowerManagementLimit(self, _handle: str) -> int:
        if not self.limit_readable:
            raise NVMLError(NOT_SUPPORTED)
        return self.limit

    def nvmlDeviceGetPowerManagementLimitConstraints(self, _handle: str) -> tuple[int, int]:
        if self.constraints is None:
            raise NVMLError(NOT_SUPPORTED)
        return self.constraints

    def nvmlDeviceGetPowerManagementDefaultLimit(self, _handle: str) -> int:
        return self.default

    def nvmlDeviceGetMaxClockInfo(self, _handle: str, _kind: int) -> int:
        return self.max_clock

    def nvmlDeviceGetMigMode(self, _handle: str) -> list[int]:
        return [self.mig, self.mig]

    def nvmlDeviceSetPowerManagementLimit(self, _handle: str, milli: int) -> None:
        self._set("limit", milli)
        if self.applies:
            self.limit = milli

    def nvmlDeviceSetGpuLockedClocks(self, _handle: str, low: int, high: int) -> None:
        self._set("lock", low, high)

    def nvmlDeviceResetGpuLockedClocks(self, _handle: str) -> None:
        self._set("unlock")

    def _set(self, name: str, *args: int) -> None:
        if self.set_error is not None:
            raise NVMLError(self.set_error)
        self.calls.append((name, args))
