"""A model's header as dry runs need it: without the vocabulary.

llama.cpp reads every word anew for each placement of the weights, prints them all to make a line
of its log, and sets the tokenizer up: most of a dry run's time. Nothing of it has to do with
memory but the number of words.
"""

import ctypes
import os
from pathlib import Path
from typing import NamedTuple

from app.worker import native
from app.worker.native import llama

# enum llama_model_kv_override_type
_OVERRIDE_INT, _OVERRIDE_TEXT = 0, 3
# enum gguf_type
_UINT16, _ARRAY = 2, 9
_PATH_BYTES = 4096

Overrides = ctypes.Array[ctypes.Structure]


class PlannedHeader(NamedTuple):
    """What to load instead of a model file.

    Attributes:
        paths: The shards, the first one replaced by a file in memory where there is such a thing.
        overrides: Metadata that stands for the vocabulary; ``None`` = the file has none.
        fd: The file in memory.
    """

    paths: tuple[bytes, ...]
    overrides: Overrides | None = None
    fd: int | None = None

    def close(self) -> None:
        """Forget the file in memory."""
        if self.fd is not None:
            os.close(self.fd)


def planned_header(path: str) -> PlannedHeader:
    """Return the header of the model at ``path``; its own if nothing can be left out."""
    plain = PlannedHeader((os.fsencode(path),))
    file = native.gguf_open(plain.paths[0], native.GgufParams(True, None))
    if not file:
        return plain  # the load says what is wrong with it
    try:
        overrides = _without_words(file)
        shards = _shards(file, path) if overrides else None
        if shards is None:
            return plain._replace(overrides=overrides)
        fd = _in_memory(file, Path(path).stat().st_size)
    finally:
        native.gguf_free(file)
    if fd is None:
        return plain._replace(overrides=overrides)
    return PlannedHeader((f"/proc/self/fd/{fd}".encode(), *shards[1:]), overrides, fd)


def _without_words(file: int) -> Overrides | None:
    """Return metadata of a model without tokenizer but with as many words."""
    tokens = native.gguf_find_key(file, b"tokenizer.ggml.tokens")
    arch = native.gguf_find_key(file, b"general.architecture")
    if tokens < 0 or arch < 0:
        return None
    overrides = (llama.llama_model_kv_override * 3)()
    overrides[0].tag = _OVERRIDE_TEXT
    overrides[0].key = b"tokenizer.ggml.model"
    overrides[0].value.val_str = b"none"
    overrides[1].tag = _OVERRIDE_INT
    overrides[1].key = native.gguf_text(file, arch) + b".vocab_size"
    overrides[1].value.val_i64 = native.gguf_array_length(file, tokens)
    return overrides  # type: ignore[no-any-return]


def _shards(file: int, path: str) -> tuple[bytes, ...] | None:
    """Return the model's files, ``None`` if their names cannot be told from the first one's."""
    first = os.fsencode(path)
    key = native.gguf_find_key(file, b"split.count")
    if key < 0:
        return (first,)
    if native.gguf_type(file, key) != _UINT16:
        return None
    count = native.gguf_u16(file, key)
    name = ctypes.create_string_buffer(_PATH_BYTES)
    if count > 1 and not llama.llama_split_prefix(name, _PATH_BYTES, first, 0, count):
        return None
    prefix, found = name.value, [first]
    for i in range(1, count):
        llama.llama_split_path(name, _PATH_BYTES, prefix, i, count)
        found.append(name.value)
    return tuple(found)


def _in_memory(file: int, file_bytes: int) -> int | None:
    """Write ``file`` without its words to a file in memory; the weights are a hole in it."""
    if not hasattr(os, "memfd_create"):
        return None
    data_bytes = file_bytes - native.gguf_data_offset(file)
    keys = [native.gguf_key(file, i) for i in range(native.gguf_n_kv(file))]
    lists = [k for i, k in enumerate(keys) if native.gguf_type(file, i) == _ARRAY]
    for key in lists:
        if key.startswith(b"tokenizer."):
            native.gguf_remove_key(file, key)
    fd = os.memfd_create("header")
    try:
        if native.gguf_write(file, f"/proc/self/fd/{fd}".encode(), True):
            # the engine compares the size with where the tensors end
            os.ftruncate(fd, native.gguf_meta_size(file) + data_bytes)
            return fd
    except OSError:
        pass  # larger than files may be here; the model's own file serves as well
    os.close(fd)
    return None
