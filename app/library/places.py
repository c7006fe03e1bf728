"""Where other programs keep models, per operating system.

Folders as the programs use them by default, with the environment variables they obey. A folder
that does not exist costs nothing, so old and new locations stand side by side.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from app import runtime
from app.domain.record import Record


class Origin(StrEnum):
    """The program that downloaded a model, or ``folder``: the user's own. Stable wire values."""

    RIGTUNE = "rigtune"
    LM_STUDIO = "lmstudio"
    OLLAMA = "ollama"
    HUGGING_FACE = "huggingface"
    JAN = "jan"
    GPT4ALL = "gpt4all"
    LLAMA_CPP = "llama.cpp"
    FOLDER = "folder"


class Place(Record, frozen=True, kw_only=True):
    """One folder to look into and whose it is."""

    origin: Origin
    path: Path


def default_places() -> tuple[Place, ...]:
    """Return every folder to look into for this user, RigTune's own first."""
    own = Place(origin=Origin.RIGTUNE, path=runtime.data_dir() / "models")
    try:
        home = Path.home()
    except RuntimeError:
        return (own,)
    return (own, *places_of(home, os.environ, sys.platform))


def folder_places(folders: Iterable[str]) -> tuple[Place, ...]:
    """Return folders that the user named."""
    return tuple(Place(origin=Origin.FOLDER, path=Path(f).expanduser()) for f in folders)


def places_of(home: Path, environ: Mapping[str, str], platform: str) -> tuple[Place, ...]:
    """Return the folders of other programs for one account.

    Args:
        home: The account's home folder.
        environ: Environment variables, as the other programs would see them.
        platform: ``sys.platform`` of the account.
    """
    base = _Base(home, environ, platform)
    found = [
        *(Place(origin=Origin.LM_STUDIO, path=p) for p in _lm_studio(home)),
        *(Place(origin=Origin.OLLAMA, path=p) for p in _ollama(base)),
        *(Place(origin=Origin.HUGGING_FACE, path=p) for p in _hugging_face(base)),
        *(Place(origin=Origin.JAN, path=p) for p in _jan(base)),
        Place(origin=Origin.GPT4ALL, path=base.data / "nomic.ai" / "GPT4All"),
        Place(origin=Origin.LLAMA_CPP, path=base.cache / "llama.cpp"),
    ]
    if chosen := base.variable("LLAMA_CACHE"):
        found.append(Place(origin=Origin.LLAMA_CPP, path=chosen))
    return tuple(found)


class _Base:
    """The account's standard folders."""

    def __init__(self, home: Path, environ: Mapping[str, str], platform: str) -> None:
        self.home = home
        self.platform = platform
        self._environ = environ
        if platform == "win32":
            self.config = self.variable("APPDATA") or home / "AppData" / "Roaming"
            self.data = self.variable("LOCALAPPDATA") or home / "AppData" / "Local"
            self.cache = self.data
        elif platform == "darwin":
            self.config = self.data = home / "Library" / "Application Support"
            self.cache = home / "Library" / "Caches"
        else:
            self.config = self.variable("XDG_CONFIG_HOME") or home / ".config"
            self.data = self.variable("XDG_DATA_HOME") or home / ".local" / "share"
            self.cache = self.variable("XDG_CACHE_HOME") or home / ".cache"

    def variable(self, name: str) -> Path | None:
        """Return a folder named by an environment variable; relative ones mean nothing here."""
        path = Path(self._environ.get(name, ""))
        return path if path.is_absolute() else None


def _lm_studio(home: Path) -> Iterator[Path]:
    root = home / ".lmstudio"
    # the user may have moved the program's home, and the models apart from it
    moved = _first_line(home / ".lmstudio-home-pointer")
    for folder in (root, Path(moved)) if moved else (root,):
        yield folder / "models"
        chosen = _json_text(folder / "settings.json", "downloadsFolder")
        if chosen:
            yield Path(chosen)
    yield home / ".cache" / "lm-studio" / "models"


def _ollama(base: _Base) -> Iterator[Path]:
    if chosen := base.variable("OLLAMA_MODELS"):
        yield chosen
    yield base.home / ".ollama" / "models"
    if base.platform == "linux":
        # the service's own account, where it was installed as one
        yield Path("/usr/share/ollama/.ollama/models")
        yield Path("/var/lib/ollama/models")


def _hugging_face(base: _Base) -> Iterator[Path]:
    for name, below in (("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub")):
        if chosen := base.variable(name):
            yield chosen / below
    if chosen := base.variable("XDG_CACHE_HOME"):
        yield chosen / "huggingface" / "hub"
    yield base.home / ".cache" / "huggingface" / "hub"


def _jan(base: _Base) -> Iterator[Path]:
    data = base.config / "Jan" / "data"
    chosen = _json_text(base.config / "Jan" / "settings.json", "data_folder")
    for folder in (data, base.data / "Jan" / "data", *([Path(chosen)] if chosen else [])):
        yield folder / "llamacpp" / "models"
        yield folder / "models"
    yield base.home / "jan" / "models"


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip().partition("\n")[0]
    except (OSError, UnicodeDecodeError):
        return ""


def _json_text(path: Path, key: str) -> str:
    try:
        value = json.loads(path.read_bytes())[key]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return value if isinstance(value, str) and Path(value).is_absolute() else ""
