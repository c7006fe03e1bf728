"""Finds and checks the files of a split model.

``gguf-split`` names them ``<prefix>-%05d-of-%05d.gguf`` and writes ``split.no``, ``split.count``
and ``split.tensors.count``; early versions wrote ``general.split`` and ``general.split_count``.
"""

import re
from pathlib import Path
from typing import NamedTuple

from app.domain.errors import EnvironmentProblem
from app.gguf.header import Header, read_header
from app.gguf.metadata import Metadata
from app.gguf.source import Source, display_name

MAX_SHARDS = 1000

_SHARD_NAME = re.compile(r"(?P<prefix>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)


class Split(NamedTuple):
    """Place of a file in a split model.

    Attributes:
        shard: Which shard it is, from 0.
        n_shards: How many there are; 1 = not split.
    """

    shard: int
    n_shards: int


def read_split(metadata: Metadata) -> Split:
    """Return what ``metadata`` says about splitting; a count of 0 or 1 is a single file."""
    count = _first(metadata, "split.count", "general.split_count")
    if count <= 1:
        return Split(0, 1)
    return Split(_first(metadata, "split.no", "general.split"), count)


def read_shards(path: Path) -> tuple[Split, tuple[Header, ...]]:
    """Return the place of ``path`` and the headers of all shards, the first one first.

    Raises:
        EnvironmentProblem: A shard is missing, misnamed, damaged or of another model.
    """
    opened = _read(path)
    split = read_split(opened.metadata)
    if split.n_shards == 1:
        return split, (opened,)
    paths = _shard_paths(path, split)
    headers = tuple(
        opened if index == split.shard else _read(shard) for index, shard in enumerate(paths)
    )
    _check_match(headers, split)
    return split, headers


def _read(path: Path) -> Header:
    with Source(path) as source:
        header = read_header(source)
        source.check_unchanged()
    return header


def _first(metadata: Metadata, *keys: str) -> int:
    for key in keys:
        value = metadata.integer(key)
        if value is not None:
            return value
    return 0


def _shard_paths(path: Path, split: Split) -> tuple[Path, ...]:
    match = _SHARD_NAME.fullmatch(path.name)
    if split.n_shards > MAX_SHARDS or split.shard >= split.n_shards:
        raise _mismatch(path, f"it claims to be part {split.shard + 1} of {split.n_shards}")
    if match is None or (int(match["number"]), int(match["count"])) != (
        split.shard + 1,
        split.n_shards,
    ):
        raise EnvironmentProblem(
            "gguf_shard_name",
            f"{display_name(path)} is part {split.shard + 1} of {split.n_shards} of a split "
            f"model, but is not named like one.",
            f"Give the parts their names back: …-00001-of-{split.n_shards:05}.gguf and so on, "
            f"all in one folder.",
        )
    paths = tuple(
        path.with_name(f"{match['prefix']}-{number:05}-of-{split.n_shards:05}.gguf")
        for number in range(1, split.n_shards + 1)
    )
    missing = [display_name(shard) for shard in paths if _is_missing(shard)]
    if missing:
        raise _missing(missing, split.n_shards)
    return paths


def _is_missing(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # it is there; reading it will say what is wrong
    return False


def _missing(names: list[str], count: int) -> EnvironmentProblem:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return EnvironmentProblem(
        "gguf_shard_missing",
        f"The model is split into {count} files and {len(names)} of them "
        f"{'is' if len(names) == 1 else 'are'} missing: {shown}.",
        "Download the missing files into the same folder.",
    )


def _check_match(headers: tuple[Header, ...], split: Split) -> None:
    for index, header in enumerate(headers):
        found = read_split(header.metadata)
        if found != (index, split.n_shards):
            raise _mismatch(
                header.path, f"it says it is part {found.shard + 1} of {found.n_shards}"
            )
    expected = _first(headers[0].metadata, "split.tensors.count")
    n_tensors = sum(len(header.tensors) for header in headers)
    if expected and expected != n_tensors:
        raise _mismatch(
            headers[0].path, f"the files hold {n_tensors} tensors where {expected} belong"
        )


def _mismatch(path: Path, what: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        "gguf_shard_mismatch",
        f"{display_name(path)} does not fit the other parts of its model: {what}.",
        "Download all parts again from one place; parts of different versions do not mix.",
    )
