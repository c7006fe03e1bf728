"""The engine's part of a recorded machine: which build it was, and which devices it listed."""

import re
from pathlib import Path

import msgspec

from app.domain.errors import EnvironmentProblem
from app.domain.machine import EngineDevice, EngineInfo

FILE_NAME = "engine.json"
_HINT = "Record that machine again with `rigtune probe --record`."
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def write_engine(directory: Path, engine: EngineInfo | None) -> None:
    """Write what the engine lists beside the machine; nothing where it was not asked.

    An older file goes: it would be another day's engine. Addresses of other computers are
    left out.

    Raises:
        EnvironmentProblem: The folder cannot be written.
    """
    file = directory / FILE_NAME
    try:
        if engine is None:
            file.unlink(missing_ok=True)
            return
        devices = tuple(_anonymous(i, device) for i, device in enumerate(engine.devices))
        shown = msgspec.structs.replace(engine, devices=devices)
        part = file.with_suffix(".part")
        text = msgspec.json.format(msgspec.json.encode(shown), indent=1).decode()
        part.write_text(_without_home(text) + "\n", encoding="utf-8")
        part.replace(file)
    except OSError as error:
        message = f"The engine's devices could not be written to {file}: {error.strerror}."
        raise EnvironmentProblem(
            "not_writable", message, "Choose a folder you may write to."
        ) from error


def read_engine(directory: Path) -> EngineInfo | None:
    """Return the engine of a recorded machine, ``None`` where none was asked there.

    Raises:
        EnvironmentProblem: The file is damaged.
    """
    file = directory / FILE_NAME
    try:
        return msgspec.json.decode(file.read_bytes(), type=EngineInfo)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"{file} could not be read: {error.strerror}."
        raise EnvironmentProblem("no_recording", message, _HINT) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"{file} does not hold the devices of an engine: {error}."
        raise EnvironmentProblem("broken_recording", message, _HINT) from error


def _without_home(text: str) -> str:
    """Return JSON without the path of somebody's home, where an engine of their own may lie."""
    home = str(Path.home())
    if len(home) <= len("C:\\"):
        return text
    return text.replace(msgspec.json.encode(home).decode()[1:-1], "~")


def _anonymous(index: int, device: EngineDevice) -> EngineDevice:
    description = _UUID.sub("…", device.description)
    if device.endpoint is None:
        return msgspec.structs.replace(device, description=description)
    return msgspec.structs.replace(device, description=f"remote {index}", endpoint=f"host{index}:0")
