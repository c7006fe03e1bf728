"""What a file that is not GGUF is instead, told by its first bytes."""

import struct

from app.domain.errors import EnvironmentProblem
from app.gguf.source import Source, incomplete_hint

MAGIC = b"GGUF"
SUPPORTED_VERSIONS = (2, 3)

_DOWNLOAD = "Download the .gguf file itself"
_CONVERT = "Convert it with llama.cpp's convert_hf_to_gguf.py, or download a GGUF of the model."

_FOREIGN: tuple[tuple[str, tuple[bytes, ...], str, str], ...] = (
    (
        "gguf_html",
        (b"<!doctype html", b"<html", b"<head", b"<?xml"),
        "is a web page, not a model: the download was answered by a login or error page",
        f"{_DOWNLOAD}, signed in where the site asks for it, not the page that shows it.",
    ),
    (
        "gguf_lfs_pointer",
        (b"version https://git-lfs",),
        "is a Git LFS pointer, not the model itself",
        "Run 'git lfs pull' in its folder, or download the file from the web page.",
    ),
    (
        "gguf_json",
        (b"{",),
        "is a JSON text, not a model",
        f"{_DOWNLOAD} from the same page.",
    ),
    (
        "gguf_zip",
        (b"PK\x03\x04",),
        "is a ZIP archive (PyTorch checkpoints are ZIP files too), not a GGUF model",
        f"Unpack it if a .gguf is inside. {_CONVERT}",
    ),
    (
        "gguf_pytorch",
        (b"\x80\x02", b"\x80\x04", b"\x80\x05"),
        "is a PyTorch pickle, not a GGUF model",
        _CONVERT,
    ),
    (
        "gguf_archive",
        (b"\x1f\x8b", b"7z\xbc\xaf\x27\x1c", b"Rar!", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"),
        "is a compressed archive, not a model",
        "Unpack it and open the .gguf inside.",
    ),
    (
        "gguf_old_format",
        (b"tjgg", b"fmgg", b"lmgg", b"algg", b"ggjt", b"ggml", b"ggmf", b"ggla"),
        "is in a format from before GGUF (2023), which llama.cpp no longer reads",
        "Download the model as GGUF.",
    ),
)


def check_magic(source: Source) -> int:
    """Return the GGUF version of ``source``.

    Raises:
        EnvironmentProblem: It is no GGUF file, or one this engine cannot read.
    """
    head = source.read_at(0, 64)
    if head[:4] == b"FUGG":
        raise _big_endian(source, "gguf_reversed_magic")
    if head[:4] != MAGIC:
        raise _foreign(source, head)
    if len(head) < 8:
        raise source.truncated()
    (version,) = struct.unpack_from("<I", head, 4)
    if version & 0xFFFF == 0 and version:
        raise _big_endian(source, "gguf_big_endian")
    if version not in SUPPORTED_VERSIONS:
        raise _unsupported_version(source, version)
    return int(version)


def _foreign(source: Source, head: bytes) -> EnvironmentProblem:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if _is_safetensors(source, head):
        return EnvironmentProblem(
            "gguf_safetensors", f"{source.name} is a safetensors file, not a GGUF model.", _CONVERT
        )
    for code, starts, what, hint in _FOREIGN:
        if any(start.startswith(s.lower()) or head.startswith(s) for s in starts):
            return EnvironmentProblem(code, f"{source.name} {what}.", hint)
    if MAGIC.startswith(head):
        return source.truncated()
    if ".part" in source.name:
        return EnvironmentProblem(
            "gguf_not_gguf",
            f"{source.name} does not start like a GGUF file.",
            incomplete_hint(source.path),
        )
    return EnvironmentProblem(
        "gguf_not_gguf",
        f"{source.name} is not a GGUF file: it starts with {head[:4]!r} instead of {MAGIC!r}.",
        "Choose a model in GGUF format; if this should be one, download it again.",
    )


def _is_safetensors(source: Source, head: bytes) -> bool:
    """Its header is a length (u64) followed by a JSON object."""
    if len(head) < 9 or head[8:9] != b"{":
        return False
    return 2 <= int.from_bytes(head[:8], "little") <= source.size - 8


def _big_endian(source: Source, code: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        code,
        f"{source.name} is a big-endian model, not usable on this computer.",
        "Download the usual (little-endian) GGUF, or convert it with gguf_convert_endian.py.",
    )


def _unsupported_version(source: Source, version: int) -> EnvironmentProblem:
    if version == 1:
        return EnvironmentProblem(
            "gguf_version_unsupported",
            f"{source.name} is a GGUF version 1 file, which llama.cpp no longer reads.",
            "Download a current GGUF of the model, or convert it again.",
        )
    return EnvironmentProblem(
        "gguf_version_unsupported",
        f"{source.name} is a GGUF version {version} file; versions 2 and 3 can be read.",
        "If the file is genuine, a newer RigTune or engine may read it.",
    )
