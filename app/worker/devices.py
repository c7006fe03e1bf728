"""Loads the backends and says which devices the engine sees and would use."""

import ctypes
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from app.domain.machine import EngineDevice, EngineInfo, GpuKind
from app.domain.outcome import Outcome
from app.domain.settings import Settings, SplitMode
from app.runtime import engine_addons
from app.worker import native
from app.worker.cancel import EngineFailure
from app.worker.native import llama

# enum ggml_backend_dev_type
_GPU, _IGPU = 1, 2
_SOFTWARE_DRIVERS = ("llvmpipe", "lavapipe", "swiftshader")
# llama.cpp commit of the sources inside each binding release
_COMMITS = {"0.3.36": "0c1e57098bba43ac29e6e3b677cdceebdd22334f"}
_CONNECT_S = 5.0
_PCI = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
# handle → the parent's name for it; None = a card the parent did not choose
_given: dict[int, str | None] = {}


def load_backends(engine_dir: str | None) -> None:
    """Load every backend module the engine was built with; it finds none by itself.

    Depending on the build they lie beside libllama or in ``site-packages/bin``. Exactly one
    folder is loaded: two would register each device twice. Modules that came apart (CUDA) come
    first, as they would from one folder: of two backends for a card the first one serves.

    Raises:
        EngineFailure: The user's folder holds none.
    """
    for module in () if engine_dir else engine_addons():
        # Windows looks for what a module needs (CUDA's run time) in the folders of PATH
        os.environ["PATH"] = f"{module.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        native.load_module(os.fsencode(module))
    beside = native.library_dir
    folders = [Path(engine_dir)] if engine_dir else [beside, beside.parents[1] / "bin"]
    for folder in folders:
        if any(folder.glob("*ggml-cpu*")):
            native.load_backends(str(folder).encode())
            break
    if engine_dir and not native.reg_count():
        message = f"The libraries in {engine_dir} cannot be used: no ggml backend lies beside them."
        hint = "Name the folder that holds libllama and ggml's backends (libggml-cpu and so on)."
        raise EngineFailure(Outcome.LOAD_FAILED, "engine_unusable", message, hint)
    llama.llama_backend_init()


def add_remote(endpoint: str) -> None:
    """Register the devices of an RPC server as ``RPC0``, ``RPC1`` and so on.

    Raises:
        EngineFailure: Nobody listens there, or this build has no RPC backend.
    """
    host, _, port = endpoint.rpartition(":")
    hint = "Start the server there, or leave out --rpc."
    try:
        # asked first because the engine aborts when it cannot connect
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except (OSError, ValueError) as error:
        message = f"The RPC server {endpoint} does not answer: {error}."
        raise EngineFailure(Outcome.DEVICE_LOST, "remote_unreachable", message, hint) from error
    registry = native.reg_by_name(b"RPC")
    address = registry and native.reg_proc_address(registry, b"ggml_backend_rpc_add_server")
    if not address:
        message = "This engine build has no RPC backend."
        raise EngineFailure(Outcome.UNSUPPORTED, "no_rpc", message, "Leave out --rpc.")
    add_server = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(address)
    server = add_server(endpoint.encode())
    if not server:
        message = f"The RPC server {endpoint} offers no device."
        raise EngineFailure(Outcome.DEVICE_LOST, "remote_unreachable", message, hint)
    native.register(server)


def pin(pins: Mapping[str, str]) -> None:
    """Give cards the names that the parent knows them by, and leave all others out.

    The engine numbers what it sees: a card more or less, or a narrower view, would shift every
    name. Devices without an address (remote, software) keep their own names.

    Args:
        pins: Name → PCI address; empty = all cards, as the engine names them.
    """
    if not pins:
        return
    for handle in gpu_handles():
        device = describe(handle)
        if device.pci_id is not None:
            _given[handle] = given_name(device, pins)


def given_name(device: EngineDevice, pins: Mapping[str, str]) -> str | None:
    """Return the parent's name for a card, ``None`` if the parent did not choose it."""
    backend = _prefix(device.name)
    fits = [n for n, where in pins.items() if where == device.pci_id and _prefix(n) == backend]
    # one card may be there twice, under two drivers of one backend: then the names are the same
    return device.name if device.name in fits else next(iter(fits), None)


def name_of(handle: int) -> str:
    """Return the name by which a device is known to the parent."""
    return _given.get(handle) or str(native.dev_name(handle).decode())


def engine_info(engine_dir: str | None = None) -> EngineInfo:
    """Return the build, its backends and every device but the CPU.

    Args:
        engine_dir: Folder of the user's own build; its libraries know their commit themselves.
    """
    count = native.reg_count()
    names = [native.reg_name(native.reg_get(i)).decode() for i in range(count)]
    return EngineInfo(
        version=native.binding_version,
        llama_version=llama.llama_version().decode(),
        commit=_own_commit() if engine_dir else _COMMITS.get(native.binding_version),
        backends=tuple(dict.fromkeys(name.partition("[")[0] for name in names)),
        devices=tuple(describe(handle) for handle in gpu_handles()),
        supports_offload=bool(llama.llama_supports_gpu_offload()),
        directory=str(Path(engine_dir).absolute()) if engine_dir else None,
    )


def _own_commit() -> str | None:
    commit = (native.ggml_commit() or b"").decode(errors="replace")
    return commit if commit not in {"", "unknown"} else None


def gpu_handles() -> list[int]:
    """Return the engine's handles of every device that layers can be put on."""
    handles = [native.dev_get(i) for i in range(native.dev_count())]
    known = [h for h in handles if native.dev_type(h) in {_GPU, _IGPU}]
    return [h for h in known if _given.get(h, "") is not None]


def describe(handle: int) -> EngineDevice:
    """Return what the engine knows about one device (opens its driver's context)."""
    props = native.DeviceProps()
    native.dev_props(handle, ctypes.byref(props))
    backend = native.reg_name(native.dev_reg(handle)).decode().partition("[")[0]
    description = (props.description or b"").decode(errors="replace")
    total = props.memory_total or None
    return EngineDevice(
        name=name_of(handle),
        backend=backend,
        description=description,
        kind=_kind(backend, description, props.type),
        total_bytes=total,
        free_bytes=min(props.memory_free, total) if total else None,
        pci_id=_pci_id(props.device_id),
        endpoint=description if backend == "RPC" else None,
    )


def choose(settings: Settings) -> list[int]:
    """Return the handles of the devices to use, in order; split mode ``none`` takes the first.

    Without names: as llama.cpp chooses (remote first, then discrete, each card once;
    integrated only without discrete), and none at all for zero layers, so that CPU only means
    CPU only. A device named explicitly is opened even for zero layers: it then computes long
    prompts.

    Raises:
        EngineFailure: A name is not one of the engine's devices.
    """
    names = settings.devices
    by_name = {name_of(h): h for h in gpu_handles()}
    unknown = [n for n in names if n not in by_name]
    if unknown:
        message = f"The engine has no device {', '.join(unknown)}."
        hint = f"It has: {', '.join(by_name) or 'the CPU only'}."
        raise EngineFailure(Outcome.UNSUPPORTED, "unknown_device", message, hint)
    chosen = [by_name[n] for n in names]
    if not names and settings.n_gpu_layers > 0:
        chosen = _every_gpu(by_name)
    return chosen[:1] if settings.split_mode is SplitMode.NONE else chosen


def _every_gpu(by_name: dict[str, int]) -> list[int]:
    known = {name: describe(handle) for name, handle in by_name.items()}
    remote = [n for n, d in known.items() if d.backend == "RPC"]
    discrete: list[str] = []
    seen: set[str] = set()
    for name, device in known.items():
        is_local_gpu = native.dev_type(by_name[name]) == _GPU and device.backend != "RPC"
        if is_local_gpu and (device.pci_id is None or device.pci_id not in seen):
            seen.update(filter(None, [device.pci_id]))
            discrete.append(name)
    integrated = [n for n in known if native.dev_type(by_name[n]) == _IGPU]
    if integrated:
        # an integrated device seen by two backends carries no common identity: one backend
        integrated = [n for n in integrated if known[n].backend == known[integrated[0]].backend]
    return [by_name[n] for n in remote + (discrete or integrated)]


def _prefix(name: str) -> str:
    return name.rstrip("0123456789")


def _kind(backend: str, description: str, device_type: int) -> GpuKind:
    if backend == "RPC":
        return GpuKind.REMOTE
    if any(word in description.lower() for word in _SOFTWARE_DRIVERS):
        return GpuKind.SOFTWARE
    return GpuKind.INTEGRATED if device_type == _IGPU else GpuKind.DISCRETE


def _pci_id(device_id: bytes | None) -> str | None:
    """Return ``0000:01:00.0`` for the forms that backends use, or ``None``."""
    match = _PCI.fullmatch((device_id or b"").decode(errors="replace").strip().lower())
    return f"{int(match[1] or '0', 16):04x}:{match[2]}" if match else None
