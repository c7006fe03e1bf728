"""What the user prefers: one declared table of options, one JSON file.

The window's place and last model are not preferences; they have a file of their own.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from app import runtime
from app.domain.errors import EnvironmentProblem
from app.domain.record import Record

FILE_NAME = "preferences.json"
OLD_FILE_NAME = "window.json"
SCHEMA_VERSION = 1
INTERVALS_S = (0.5, 1.0, 2.0, 5.0)


class Preferences(Record, frozen=True, kw_only=True):
    """Every option with its default.

    Attributes:
        schema_version: Layout of the file.
        level: Simple hides what only llama.cpp's users know.
        theme: Colours of the window.
        contrast: Black and white text and lines; ``auto`` follows the system.
        language: Language of the window.
        memory_unit: Powers of two (GiB) or of ten (GB).
        temperature_unit: Celsius or Fahrenheit.
        interval_s: Seconds between two live readings while the dashboard shows.
        headroom_mib: Memory to leave free per device; 0 = the rule of the device.
        model_folders: Folders to look for models in, besides other programs' own.
        is_introduced: Whether the first-run screens were seen or skipped.
    """

    schema_version: int = SCHEMA_VERSION
    level: Literal["simple", "expert"] = "simple"
    theme: Literal["auto", "light", "dark"] = "auto"
    contrast: Literal["auto", "high"] = "auto"
    language: Literal["system", "en", "zh"] = "system"
    memory_unit: Literal["binary", "decimal"] = "binary"
    temperature_unit: Literal["celsius", "fahrenheit"] = "celsius"
    interval_s: float = 1.0
    headroom_mib: int = 0
    model_folders: tuple[str, ...] = ()
    is_introduced: bool = False

    @property
    def is_expert(self) -> bool:
        """Whether everything is shown."""
        return self.level == "expert"


Fields = dict[str, Any]


def _from_0(fields: Fields) -> Fields:
    """Version 0 knew the look only, and called it as the window's state file does."""
    return {"theme": fields.get("scheme", "auto"), "is_introduced": "scheme" in fields}


UPGRADES: dict[int, Callable[[Fields], Fields]] = {0: _from_0}
"""From version: what makes the next version of its fields."""


def load_preferences() -> tuple[Preferences, str]:
    """Return the stored preferences, and where a broken file was put aside ("" = it was not).

    Without a file, or where none can be read, the defaults count.
    """
    try:
        path = runtime.data_dir() / FILE_NAME
        data = path.read_bytes()
    except FileNotFoundError:
        return _before_preferences(), ""
    except (OSError, EnvironmentProblem):
        return Preferences(), ""
    try:
        return _decoded(data), ""
    except (msgspec.DecodeError, TypeError, ValueError):
        return Preferences(), _set_aside(path)


def save_preferences(preferences: Preferences) -> None:
    """Write the preferences.

    Raises:
        EnvironmentProblem: They could not be written.
    """
    runtime.atomic_write(runtime.data_dir() / FILE_NAME, msgspec.json.encode(preferences))


def _before_preferences() -> Preferences:
    """Return what the window's state file held before there were preferences."""
    try:
        return _decoded((runtime.data_dir() / OLD_FILE_NAME).read_bytes())
    except (OSError, msgspec.DecodeError, TypeError, ValueError):
        return Preferences()


def _decoded(data: bytes) -> Preferences:
    fields: Fields = msgspec.json.decode(data, type=dict[str, Any])
    version = int(fields.get("schema_version", 0))
    while version < SCHEMA_VERSION:
        fields = UPGRADES[version](fields)
        version += 1
    # A newer file is read as far as it is understood; fields that are not known are left out.
    found = msgspec.convert({**fields, "schema_version": SCHEMA_VERSION}, Preferences)
    nearest = min(INTERVALS_S, key=lambda s: abs(s - found.interval_s))
    headroom = min(max(0, found.headroom_mib), 1 << 16)
    return msgspec.structs.replace(found, interval_s=nearest, headroom_mib=headroom)


def _set_aside(path: Path) -> str:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.broken-{stamp}")
    try:
        path.replace(aside)
    except OSError:
        return str(path)
    return str(aside)
