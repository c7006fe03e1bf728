"""The one door to NVML: every call goes through ``query`` and never raises.

``pynvml`` is imported inside functions: the module loads without an NVIDIA driver and on every
system. Only reading calls are ever named; setting lives in the power helper.
"""

import contextlib
import ctypes
import threading
from typing import Any, Protocol

from probes.reading import Absence

REASONS: dict[int, Absence] = {
    1: Absence.DRIVER_NOT_LOADED,
    3: Absence.NOT_SUPPORTED,
    4: Absence.NO_PERMISSION,
    6: Absence.NO_DATA,
    8: Absence.NO_POWER,
    9: Absence.DRIVER_NOT_LOADED,
    10: Absence.STALE,
    11: Absence.STALE,
    12: Absence.LIB_MISSING,
    13: Absence.SYMBOL_MISSING,
    14: Absence.DAMAGED,
    15: Absence.LOST,
    16: Absence.LOST,
    17: Absence.NO_PERMISSION,
    18: Absence.VERSION_MISMATCH,
    19: Absence.NO_DATA,
    21: Absence.NO_DATA,
    25: Absence.SYMBOL_MISSING,
    26: Absence.SYMBOL_MISSING,
    27: Absence.NO_DATA,
    28: Absence.LOST,
}
"""NVML return code → reason; any other code is ``error``. (``pynvml.NVML_ERROR_*``.)"""


class Nvml(Protocol):
    """What the NVIDIA probe needs of NVML. Never raises."""

    def start(self) -> Absence | None:
        """Load and initialise the library; ``None`` when it works, else why not."""
        ...

    def stop(self) -> None:
        """Release every handle and the library: a held one keeps a laptop's GPU awake."""
        ...

    def query(self, function: str, *args: int, device: str | None = None) -> Any:
        """Return the plain answer of an NVML call, or an ``Absence``.

        Args:
            function: Name in ``pynvml``.
            args: Arguments after the handle; for ``nvmlDeviceGetFieldValues`` one field id.
            device: ``pci:<bus id>``, ``index:<n>`` or ``mig:<n>:<parent>`` (a part of a split
                card); ``None`` for a system call.
        """
        ...


class LiveNvml:
    """NVML of this machine."""

    def __init__(self) -> None:
        """Touch nothing: the library is loaded by ``start``."""
        self._handles: dict[str, Any] = {}
        self._pynvml: Any = None
        self._lock = threading.Lock()

    def start(self) -> Absence | None:
        """Load and initialise the library; ``None`` when it works, else why not."""
        try:
            import pynvml  # noqa: PLC0415 - absent from machines without the package
        except ImportError:
            return Absence.LIB_MISSING
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            return REASONS.get(error.value, Absence.ERROR)
        self._pynvml = pynvml
        return None

    def stop(self) -> None:
        """Release every handle and the library."""
        with self._lock:
            self._handles.clear()
            if self._pynvml is not None:
                # It may be gone with the driver already: then nothing is left to release.
                with contextlib.suppress(self._pynvml.NVMLError):
                    self._pynvml.nvmlShutdown()
                self._pynvml = None

    def query(self, function: str, *args: int, device: str | None = None) -> Any:
        """Return the plain answer of an NVML call, or an ``Absence``."""
        with self._lock:
            nvml = self._pynvml
            if nvml is None:
                return Absence.DRIVER_NOT_LOADED
            if not hasattr(nvml, function):
                return Absence.SYMBOL_MISSING
            try:
                return self._call(function, device, args)
            except nvml.NVMLError as error:
                return REASONS.get(error.value, Absence.ERROR)
            except (TypeError, nvml.NVMLLibraryMismatchError):
                # A wrapper of another release takes other arguments; an older driver's library
                # answers with a version of the structure that this wrapper does not read.
                return Absence.SYMBOL_MISSING
            except (OSError, ValueError):
                return Absence.ERROR

    def _call(self, function: str, device: str | None, args: tuple[int, ...]) -> Any:
        call = getattr(self._pynvml, function)
        if device is None:
            return plain(call(*args))
        handle = self._handle(device)
        if function == "nvmlDeviceGetFieldValues":
            return field_value(call(handle, list(args))[0])
        if function in FILLED:
            return self._filled(call, handle, FILLED[function])
        return plain(call(handle, *args))

    def _filled(self, call: Any, handle: Any, name: str) -> Any:
        answer = getattr(self._pynvml, name)()
        code = call(handle, ctypes.byref(answer))
        return REASONS.get(code, Absence.ERROR) if code else plain(answer)

    def _handle(self, device: str) -> Any:
        if device not in self._handles:
            kind, _, name = device.partition(":")
            nvml = self._pynvml
            if kind == "mig":
                index, _, parent = name.partition(":")
                handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(self._handle(parent), int(index))
            elif kind == "index":
                handle = nvml.nvmlDeviceGetHandleByIndex(int(name))
            else:
                handle = nvml.nvmlDeviceGetHandleByPciBusId(name.encode())
            self._handles[device] = handle
        return self._handles[device]


FILLED = {"nvmlDeviceGetPowerMizerMode_v1": "c_nvmlDevicePowerMizerModes_v1_t"}
"""Calls that want a structure to fill, and return the code instead of raising it."""
FIELD_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal"}
"""``valueType`` of a field → member of the union that holds the value."""


def field_value(field: Any) -> Any:
    """Return one field of a field query, which carries its own code and type."""
    if field.nvmlReturn != 0:
        return REASONS.get(field.nvmlReturn, Absence.ERROR)
    member = FIELD_MEMBERS.get(field.valueType)
    return Absence.NO_DATA if member is None else getattr(field.value, member)


def plain(value: Any) -> Any:
    """Return an answer as numbers, text, lists and dicts (what a recording can hold)."""
    if value is None or isinstance(value, int | float | str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    fields = getattr(value, "_fields_", None)
    names = [field[0] for field in fields] if fields else list(vars(value))
    return {name: plain(getattr(value, name)) for name in names}
