"""Display devices of the plug-and-play manager: PCI address, link, driver."""

import ctypes
from ctypes import POINTER, byref, c_uint32, c_void_p, c_wchar_p
from typing import Any

from probes.reading import Absence
from probes.windows.dll import Guid, function, guid, library
from probes.windows.facts import DeviceFacts

DISPLAY_CLASS = "{4d36e968-e325-11ce-bfc1-08002be10318}"
FILTER_CLASS_PRESENT = 0x200 | 0x100
PCI = "3ab22e31-8264-4b4e-9af5-a8d2d8e33e62"
DEVICE = "a45c254e-df1c-4efd-8020-67d146a850e0"
DRIVER = "a8b865dd-2e3d-4094-ad97-e593a70c75d6"
NUMBERS = {
    "link_speed": (PCI, 9),
    "link_width": (PCI, 10),
    "link_speed_max": (PCI, 11),
    "link_width_max": (PCI, 12),
    "bus": (DEVICE, 23),
    "address": (DEVICE, 30),
}
"""Field → ``DEVPROPKEY`` of a number (``pciprop.h``, ``devpkey.h``)."""
DRIVER_VERSION = (DRIVER, 3)
TYPE_UINT32, TYPE_STRING = 0x7, 0x12
MAX_CHARS = 64 * 1024


class PropertyKey(ctypes.Structure):
    """``DEVPROPKEY``."""

    _fields_ = (("category", Guid), ("number", c_uint32))


def devices() -> tuple[DeviceFacts, ...] | Absence:
    """Return the present display devices."""
    manager = library("cfgmgr32.dll")
    if isinstance(manager, Absence):
        return manager
    ids = _instance_ids(manager)
    return ids if isinstance(ids, Absence) else tuple(_device(manager, name) for name in ids)


def _instance_ids(manager: Any) -> tuple[str, ...] | Absence:
    size_of = function(
        manager, "CM_Get_Device_ID_List_SizeW", POINTER(c_uint32), c_wchar_p, c_uint32
    )
    list_ = function(manager, "CM_Get_Device_ID_ListW", c_wchar_p, c_void_p, c_uint32, c_uint32)
    for found in (size_of, list_):
        if isinstance(found, Absence):
            return found
    size = c_uint32(0)
    code = size_of(byref(size), DISPLAY_CLASS, FILTER_CLASS_PRESENT)
    if code != 0 or not 0 < size.value <= MAX_CHARS:
        return Absence.NO_DATA
    buffer = (ctypes.c_uint16 * size.value)()
    if list_(DISPLAY_CLASS, buffer, size, FILTER_CLASS_PRESENT) != 0:
        return Absence.NO_DATA
    return multi_string(bytes(buffer))


def multi_string(data: bytes) -> tuple[str, ...]:
    """Return the parts of a list of NUL-terminated UTF-16 texts."""
    return tuple(part for part in data.decode("utf-16-le", "replace").split("\0") if part)


def _device(manager: Any, instance_id: str) -> DeviceFacts:
    locate = function(manager, "CM_Locate_DevNodeW", POINTER(c_uint32), c_wchar_p, c_uint32)
    node = c_uint32(0)
    if isinstance(locate, Absence) or locate(byref(node), instance_id, 0) != 0:
        return DeviceFacts(instance_id=instance_id)
    status_of = function(
        manager, "CM_Get_DevNode_Status",
        POINTER(c_uint32), POINTER(c_uint32), c_uint32, c_uint32,
    )  # fmt: skip
    status, problem = c_uint32(0), c_uint32(0)
    known = not isinstance(status_of, Absence)
    known = known and status_of(byref(status), byref(problem), node, 0) == 0
    numbers = {field: _number(manager, node, key) for field, key in NUMBERS.items()}
    return DeviceFacts(
        instance_id=instance_id,
        driver_version=_text(manager, node, DRIVER_VERSION),
        problem=problem.value if known else None,
        **numbers,
    )


def _number(manager: Any, node: c_uint32, key: tuple[str, int]) -> int | None:
    data = _property(manager, node, key, TYPE_UINT32)
    return None if data is None or len(data) != 4 else int.from_bytes(data, "little")


def _text(manager: Any, node: c_uint32, key: tuple[str, int]) -> str | None:
    data = _property(manager, node, key, TYPE_STRING)
    return None if data is None else data.decode("utf-16-le", "replace").rstrip("\0") or None


def _property(manager: Any, node: c_uint32, key: tuple[str, int], kind: int) -> bytes | None:
    get = function(
        manager, "CM_Get_DevNode_PropertyW",
        c_uint32, POINTER(PropertyKey), POINTER(c_uint32), c_void_p, POINTER(c_uint32), c_uint32,
    )  # fmt: skip
    if isinstance(get, Absence):
        return None
    wanted = PropertyKey(guid(key[0]), key[1])
    found, size = c_uint32(0), c_uint32(512)
    buffer = ctypes.create_string_buffer(size.value)
    code = get(node, byref(wanted), byref(found), buffer, byref(size), 0)
    return buffer.raw[: size.value] if code == 0 and found.value == kind else None
