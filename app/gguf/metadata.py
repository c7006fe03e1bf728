"""The key/value pairs of a GGUF header, with type-checked access.

Scalars are in memory; arrays are only located, because a vocabulary of 262,144 words costs
seconds to materialise and nobody needs it. ``read_array`` fetches a small one from the file.
"""

import struct
from pathlib import Path
from typing import NamedTuple

from app.domain.errors import EnvironmentProblem
from app.gguf.source import Source, display_name

MAX_ARRAY_ELEMENTS = 65_536
MAX_STRING_BYTES = 1 << 20

VALUE_FORMATS: dict[int, str] = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
"""GGUF value type → struct format, for the types of fixed size."""

STRING = 8
ARRAY = 9

Scalar = int | float | bool | str


class ArrayValue(NamedTuple):
    """Where an array lies.

    Attributes:
        type: GGUF type of its elements.
        n_elements: Number of elements.
        pos: Position of the first element in the file.
    """

    type: int
    n_elements: int
    pos: int


class LongString(NamedTuple):
    """A string that is too long to be kept (no real file has one)."""

    n_bytes: int


Value = Scalar | ArrayValue | LongString


class Metadata:
    """Read access to the pairs of one file."""

    def __init__(self, path: Path, values: dict[str, Value]) -> None:
        """Keep what the header parser found; ``path`` serves ``read_array``."""
        self._path = path
        self._values = values

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> tuple[str, ...]:
        """Return every key in file order."""
        return tuple(self._values)

    def is_array(self, key: str) -> bool:
        """Return whether ``key`` holds an array."""
        return isinstance(self._values.get(key), ArrayValue)

    def n_elements(self, key: str) -> int | None:
        """Return the length of the array under ``key``, ``None`` if there is none."""
        value = self._values.get(key)
        return value.n_elements if isinstance(value, ArrayValue) else None

    def string(self, key: str) -> str | None:
        """Return a string; bytes that are not UTF-8 are kept as surrogate escapes."""
        value = self._values.get(key)
        if value is None or isinstance(value, LongString):
            return None
        if not isinstance(value, str):
            raise self._mistyped(key, "a string")
        return value

    def text(self, key: str) -> str | None:
        """Return a string fit for JSON and display: what is not UTF-8 becomes U+FFFD."""
        value = self.string(key)
        return None if value is None else printable(value)

    def integer(self, key: str) -> int | None:
        """Return a whole number ≥ 0, ``None`` when the key is absent.

        Raises:
            EnvironmentProblem: The value is of another type or negative.
        """
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, int):
            raise self._mistyped(key, "a whole number")
        return self._natural(key, value)

    def boolean(self, key: str) -> bool | None:
        """Return a flag, ``None`` when the key is absent."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, int):
            raise self._mistyped(key, "true or false")
        return bool(value)

    def per_layer(self, key: str, n_layer: int) -> tuple[int, ...] | None:
        """Return one whole number per layer from a scalar or an array.

        Raises:
            EnvironmentProblem: The array has another length than the model has layers.
        """
        if not self.is_array(key):
            value = self.integer(key)
            return None if value is None else (value,) * n_layer
        values = self.integers(key)
        if len(values) != n_layer:
            raise self._wrong(key, f"has {len(values)} entries for {n_layer} layers")
        return values

    def integers(self, key: str) -> tuple[int, ...]:
        """Return an array of whole numbers ≥ 0 (flags count as 0 and 1)."""
        return tuple(self._natural(key, self._whole(key, v)) for v in self.read_array(key))

    def read_array(self, key: str) -> tuple[Scalar, ...]:
        """Return a small array (≤ 65,536 elements), read from the file now.

        Raises:
            EnvironmentProblem: There is no such array, it is too long, or the file is gone.
        """
        array = self._values.get(key)
        if not isinstance(array, ArrayValue):
            raise self._mistyped(key, "a list")
        if array.n_elements > MAX_ARRAY_ELEMENTS:
            raise self._wrong(key, f"has {array.n_elements} elements, too many to read")
        with Source(self._path) as source:
            if array.type == STRING:
                return _read_strings(source, array)
            layout = struct.Struct(f"<{array.n_elements}{VALUE_FORMATS[array.type]}")
            offset = source.move_to(array.pos, layout.size)
            return layout.unpack_from(source.window, offset)

    def _whole(self, key: str, value: Scalar) -> int:
        if not isinstance(value, int):
            raise self._mistyped(key, "a list of whole numbers")
        return int(value)

    def _natural(self, key: str, value: int) -> int:
        if value < 0:
            raise self._wrong(key, f"is {value}, but must not be negative")
        return int(value)

    def _mistyped(self, key: str, expected: str) -> EnvironmentProblem:
        return EnvironmentProblem(
            "gguf_key_type",
            f"{display_name(self._path)}: the value of '{printable(key)}' should be {expected}.",
            "The file was written by a faulty tool; convert or download it again.",
        )

    def _wrong(self, key: str, what: str) -> EnvironmentProblem:
        return EnvironmentProblem(
            "gguf_bad_value",
            f"{display_name(self._path)}: '{printable(key)}' {what}.",
            "The file was written by a faulty tool; convert or download it again.",
        )


def printable(value: str) -> str:
    """Return ``value`` with undecodable bytes replaced, so that it can be encoded again."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def decode(raw: bytes) -> str:
    """Return the text of ``raw``, keeping bytes that are not UTF-8 as surrogate escapes."""
    return raw.decode("utf-8", "surrogateescape")


def _read_strings(source: Source, array: ArrayValue) -> tuple[str, ...]:
    found = []
    pos = array.pos
    for _ in range(array.n_elements):
        offset = source.move_to(pos, 8)
        length = int.from_bytes(source.window[offset : offset + 8], "little")
        if length > MAX_STRING_BYTES:
            raise source.damaged("gguf_absurd_length", f"a word claims {length} bytes")
        offset = source.move_to(pos + 8, length)
        found.append(decode(source.window[offset : offset + length]))
        pos += 8 + length
    return tuple(found)
