"""The engine's C functions: those of the binding, and ggml's, which it does not bind.

Every symbol comes from the binding's own library handle. Opening ``libggml*.so`` by path would
map a second copy of ggml with a registry, a log and an abort callback of its own.
"""

import ctypes
import platform
import sys
from pathlib import Path
from typing import Any, NamedTuple

import llama_cpp
import llama_cpp.llama_cpp as _binding

llama: Any = _binding
binding_version: str = llama_cpp.__version__
library_dir = Path(str(llama._base_path))  # noqa: SLF001 - the folder the engine came from

AbortCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)

_PTR = ctypes.c_void_p
_TEXT = ctypes.c_char_p
_SIZE = ctypes.c_size_t


class DeviceProps(ctypes.Structure):
    """``struct ggml_backend_dev_props`` (ggml-backend.h)."""

    _fields_ = (
        ("name", _TEXT),
        ("description", _TEXT),
        ("memory_free", _SIZE),
        ("memory_total", _SIZE),
        ("type", ctypes.c_int),
        ("device_id", _TEXT),
        ("caps", ctypes.c_bool * 5),
    )


class GgufParams(ctypes.Structure):
    """``struct gguf_init_params`` (gguf.h)."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("ctx", _PTR))


class BuftOverride(ctypes.Structure):
    """``struct llama_model_tensor_buft_override`` (llama.h)."""

    _fields_ = (("pattern", _TEXT), ("buft", _PTR))


def _bind(name: str, result: Any, *arguments: Any) -> Any:
    function = _find(name)
    function.restype = result
    function.argtypes = arguments
    return function


def _find(name: str) -> Any:
    try:
        return getattr(llama._lib, name)  # noqa: SLF001 - the one right handle
    except AttributeError:
        if sys.platform != "win32":
            raise
    # GetProcAddress does not search dependencies as dlsym does; a DLL loads once by its name
    for dll in ("ggml.dll", "ggml-base.dll"):
        function = getattr(ctypes.CDLL(str(library_dir / dll)), name, None)
        if function is not None:
            return function
    raise AttributeError(name)


load_backends = _bind("ggml_backend_load_all_from_path", None, _TEXT)
load_module = _bind("ggml_backend_load", _PTR, _TEXT)
reg_count = _bind("ggml_backend_reg_count", _SIZE)
reg_get = _bind("ggml_backend_reg_get", _PTR, _SIZE)
reg_name = _bind("ggml_backend_reg_name", _TEXT, _PTR)
reg_by_name = _bind("ggml_backend_reg_by_name", _PTR, _TEXT)
reg_proc_address = _bind("ggml_backend_reg_get_proc_address", _PTR, _PTR, _TEXT)
register = _bind("ggml_backend_register", None, _PTR)
dev_count = _bind("ggml_backend_dev_count", _SIZE)
dev_get = _bind("ggml_backend_dev_get", _PTR, _SIZE)
dev_name = _bind("ggml_backend_dev_name", _TEXT, _PTR)
dev_type = _bind("ggml_backend_dev_type", ctypes.c_int, _PTR)
dev_props = _bind("ggml_backend_dev_get_props", None, _PTR, ctypes.POINTER(DeviceProps))
dev_reg = _bind("ggml_backend_dev_backend_reg", _PTR, _PTR)
buft_is_host = _bind("ggml_backend_buft_is_host", ctypes.c_bool, _PTR)
buft_device = _bind("ggml_backend_buft_get_device", _PTR, _PTR)
dev_buffer_type = _bind("ggml_backend_dev_buffer_type", _PTR, _PTR)
cpu_buffer_type = _bind("ggml_backend_cpu_buffer_type", _PTR)
set_abort_callback = _bind("ggml_set_abort_callback", _PTR, AbortCallback)
ggml_commit = _bind("ggml_commit", _TEXT)
gguf_open = _bind("gguf_init_from_file", _PTR, _TEXT, GgufParams)
gguf_free = _bind("gguf_free", None, _PTR)
gguf_find_key = _bind("gguf_find_key", ctypes.c_int64, _PTR, _TEXT)
gguf_array_length = _bind("gguf_get_arr_n", _SIZE, _PTR, ctypes.c_int64)
gguf_text = _bind("gguf_get_val_str", _TEXT, _PTR, ctypes.c_int64)
gguf_u16 = _bind("gguf_get_val_u16", ctypes.c_uint16, _PTR, ctypes.c_int64)
gguf_n_kv = _bind("gguf_get_n_kv", ctypes.c_int64, _PTR)
gguf_key = _bind("gguf_get_key", _TEXT, _PTR, ctypes.c_int64)
gguf_type = _bind("gguf_get_kv_type", ctypes.c_int, _PTR, ctypes.c_int64)
gguf_remove_key = _bind("gguf_remove_key", ctypes.c_int64, _PTR, _TEXT)
gguf_data_offset = _bind("gguf_get_data_offset", _SIZE, _PTR)
gguf_meta_size = _bind("gguf_get_meta_size", _SIZE, _PTR)
gguf_write = _bind("gguf_write_to_file", ctypes.c_bool, _PTR, _TEXT, ctypes.c_bool)


class MapLayout(NamedTuple):
    """Where a C++ library keeps a ``std::map``; offsets in bytes, 64-bit.

    Attributes:
        entries: Of the number of entries, in the map.
        root: Of the root: in the map, then (MSVC) in the head node found there.
        left: Of the smaller child, in a node.
        right: Of the larger child, in a node.
        is_end: Of the byte that marks a node past the end; ``None`` = a null pointer does.
    """

    entries: int
    root: tuple[int, ...]
    left: int
    right: int
    is_end: int | None


_BREAKDOWN = {
    # libstdc++: Linux, and mingw-w64 on Windows
    "_Z26llama_get_memory_breakdownPK13llama_context": MapLayout(40, (16,), 16, 24, None),
    # Microsoft's library (_Tree_node in <xmemory>)
    "?llama_get_memory_breakdown@@YA?AV?$map@PEAUggml_backend_buffer_type@@"
    "Ullama_memory_breakdown_data@@U?$less@PEAUggml_backend_buffer_type@@@std@@V?$allocator@U?$pair"
    "@QEAUggml_backend_buffer_type@@Ullama_memory_breakdown_data@@@std@@@4@@std@@PEBUllama_context"
    "@@@Z": MapLayout(8, (0, 8), 0, 16, 25),
}


def breakdown_function() -> tuple[Any, MapLayout] | None:
    """Return ``llama_get_memory_breakdown``, or ``None`` where its C++ symbol is not known.

    It returns a ``std::map`` by value, that is through a hidden first argument: known here for
    x86-64 only (other processors pass that pointer elsewhere).
    """
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return None
    for symbol, layout in _BREAKDOWN.items():
        try:
            return _bind(symbol, _PTR, _PTR, _PTR), layout
        except AttributeError:
            continue
    return None
