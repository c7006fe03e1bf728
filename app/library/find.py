"""Finds models that other programs downloaded, and reads them where they lie.

Nothing is written or moved. A folder that cannot be read, a broken link or a damaged manifest
hides that entry only.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from app.domain.record import Record
from app.library.places import Origin, Place, default_places, folder_places

MAX_DEPTH = 8
MAX_ENTRIES = 50_000
_SHARD = re.compile(r"(?P<stem>.+)-(?P<index>\d{5})-of-(?P<count>\d{5})$", re.IGNORECASE)
_MAX_MANIFEST_BYTES = 1 << 20
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_OLLAMA_HOST = "registry.ollama.ai"


class FoundModel(Record, frozen=True, kw_only=True):
    """A model on this machine.

    Attributes:
        id: What the user may type for it: origin, colon, name.
        origin: The program that downloaded it.
        name: The program's own name for it.
        path: The file, the first one of a split model.
        file_bytes: Size of all its files.
        n_files: Files found.
        n_files_expected: Files a split model has by its name; 1 = a single file.
        aliases: Further ids of the same file.
    """

    id: str
    origin: Origin
    name: str
    path: str
    file_bytes: int
    n_files: int = 1
    n_files_expected: int = 1
    aliases: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every file of a split model is there."""
        return self.n_files == self.n_files_expected


class _File(Record, frozen=True, kw_only=True):
    """A candidate file, its name within the place and what identifies its content's place."""

    path: Path
    name: str
    n_bytes: int
    identity: tuple[int, int]


def find_models(
    places: Iterable[Place] | None = None, folders: Iterable[str] = ()
) -> tuple[FoundModel, ...]:
    """Return the models in ``places`` (default: every known program's folders), by id.

    Those in ``folders`` of the user's own come along.

    A file that several names reach (tags, links, revisions) is one model with aliases. Files
    other than models (projectors, adapters) are not told apart here: their header does that.
    """
    by_identity: dict[tuple[int, int], FoundModel] = {}
    known_places = default_places() if places is None else places
    for place in (*known_places, *folder_places(folders)):
        for model, identity in _models_in(place):
            known = by_identity.get(identity)
            by_identity[identity] = model if known is None else _with_alias(known, model.id)
    return tuple(sorted(by_identity.values(), key=lambda m: m.id.casefold()))


def _with_alias(model: FoundModel, alias: str) -> FoundModel:
    if alias in {model.id, *model.aliases}:
        return model
    return msgspec.structs.replace(model, aliases=(*model.aliases, alias))


def _models_in(place: Place) -> Iterator[tuple[FoundModel, tuple[int, int]]]:
    files = _ollama_files(place.path) if place.origin is Origin.OLLAMA else _gguf_files(place)
    groups: dict[tuple[Path, str], list[_File]] = {}
    for file in files:
        match = _SHARD.match(file.name)
        stem = f"{match['stem']}-of-{match['count']}" if match else file.name
        groups.setdefault((file.path.parent, stem), []).append(file)
    for group in groups.values():
        yield _model(place.origin, sorted(group, key=lambda f: f.name))


def _model(origin: Origin, files: list[_File]) -> tuple[FoundModel, tuple[int, int]]:
    first = files[0]
    match = _SHARD.match(first.name)
    name = match["stem"] if match else first.name
    model = FoundModel(
        id=f"{origin}:{name}",
        origin=origin,
        name=name,
        path=str(first.path),
        file_bytes=sum(f.n_bytes for f in files),
        n_files=len(files),
        n_files_expected=int(match["count"]) if match else 1,
    )
    return model, first.identity


def _gguf_files(place: Place) -> Iterator[_File]:
    for path in _walk(place.path):
        parts = path.relative_to(place.path).with_suffix("").parts
        if place.origin is Origin.HUGGING_FACE or parts[0].startswith("models--"):
            parts = _hugging_face_name(parts)  # newer llama.cpp lays its cache out that way too
        elif place.origin is Origin.JAN and parts[-1] == "model":
            parts = parts[:-1]  # Jan names the folder and calls each file "model.gguf"
        if parts and (file := _file(path, "/".join(parts))):
            yield file


def _hugging_face_name(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Turn ``models--org--repo/snapshots/<revision>/file`` into ``org/repo/file``."""
    match parts:
        case (folder, "snapshots", _, *file) if folder.startswith("models--") and file:
            return (*folder.removeprefix("models--").split("--"), *file)
        case _:
            return ()


def _ollama_files(root: Path) -> Iterator[_File]:
    manifests = root / "manifests"
    for path in _walk(manifests, suffix=""):
        blob = _ollama_blob(root, path)
        *model, tag = path.relative_to(manifests).parts
        if blob is None or not model:
            continue
        if model[0] == _OLLAMA_HOST:
            model = model[2:] if model[1:2] == ["library"] else model[1:]
        if file := _file(blob, f"{'/'.join(model)}:{tag}"):
            yield file


def _ollama_blob(root: Path, manifest: Path) -> Path | None:
    """Return the weights a manifest names; its digest is not trusted to be a file name."""
    try:
        if manifest.stat().st_size > _MAX_MANIFEST_BYTES:
            return None
        layers = json.loads(manifest.read_bytes())["layers"]
        digest = next(x["digest"] for x in layers if x["mediaType"] == _OLLAMA_MODEL)
        found = re.fullmatch(r"sha256[:-]([0-9a-f]{64})", digest)
    except (OSError, ValueError, KeyError, TypeError, StopIteration, RecursionError):
        return None
    return root / "blobs" / f"sha256-{found[1]}" if found else None


def _file(path: Path, name: str) -> _File | None:
    try:
        info = path.stat()
    except OSError:
        return None  # a link whose target is gone, e.g. an interrupted download
    if info.st_size == 0:
        return None
    return _File(path=path, name=name, n_bytes=info.st_size, identity=(info.st_dev, info.st_ino))


def _walk(root: Path, suffix: str = ".gguf") -> Iterator[Path]:
    """Yield files below ``root``; linked folders are followed, each folder is entered once."""
    seen: set[tuple[int, int]] = set()
    todo = [(root, 0)]
    n_entries = 0
    while todo and n_entries < MAX_ENTRIES:
        folder, depth = todo.pop()
        for entry in _entries(folder, seen):
            n_entries += 1
            try:
                is_folder = entry.is_dir()
            except OSError:
                continue
            if is_folder and depth < MAX_DEPTH:
                todo.append((Path(entry.path), depth + 1))
            elif not is_folder and entry.name.lower().endswith(suffix):
                yield Path(entry.path)


def _entries(folder: Path, seen: set[tuple[int, int]]) -> list[os.DirEntry[str]]:
    try:
        info = folder.stat()
        if (info.st_dev, info.st_ino) in seen:
            return []
        seen.add((info.st_dev, info.st_ino))
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda e: e.name)
    except OSError:
        return []
