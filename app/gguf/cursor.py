"""A position in a GGUF header: fixed-size reads and bounded steps.

No count or length is believed before it is compared with the file and with what real models
have.
"""

import struct

from app.gguf.source import MAX_HEADER_BYTES, Source

MAX_STRING_ELEMENTS = 2_000_000

_U32 = struct.Struct("<I").unpack_from
_U64 = struct.Struct("<Q").unpack_from


class Cursor:
    """Reads forward through a source.

    Attributes:
        source: The file.
        pos: Position of the next byte.
    """

    def __init__(self, source: Source, pos: int) -> None:
        """Start at ``pos``."""
        self.source = source
        self.pos = pos
        self._n_string_elements = 0

    def u32(self) -> int:
        """Return the next four bytes as a number."""
        offset = self.source.move_to(self.pos, 4)
        self.pos += 4
        return int(_U32(self.source.window, offset)[0])

    def u64(self) -> int:
        """Return the next eight bytes as a number."""
        offset = self.source.move_to(self.pos, 8)
        self.pos += 8
        return int(_U64(self.source.window, offset)[0])

    def take(self, n_bytes: int) -> bytes:
        """Return the next ``n_bytes``."""
        offset = self.source.move_to(self.pos, n_bytes)
        self.pos += n_bytes
        return self.source.window[offset : offset + n_bytes]

    def length(self, what: str, limit: int, code: str = "gguf_absurd_length") -> int:
        """Return a length of at most ``limit`` bytes.

        Raises:
            EnvironmentProblem: It is longer; with ``code``.
        """
        n_bytes = self.u64()
        if n_bytes > limit:
            raise self.source.damaged(code, f"{what} claims {n_bytes} bytes")
        return n_bytes

    def check_count(self, what: str, count: int, limit: int, min_bytes: int) -> None:
        """Raise when ``count`` entries of ``min_bytes`` cannot be, or are not in the file."""
        if count > limit:
            raise self.source.damaged(
                "gguf_absurd_count", f"it claims {count} {what}, more than any real model has"
            )
        if self.pos + count * min_bytes > self.source.size:
            raise self.source.truncated()

    def skip(self, n_bytes: int) -> None:
        """Step over ``n_bytes`` without reading them."""
        self.pos += n_bytes
        if self.pos > self.source.size:
            raise self.source.truncated()

    def skip_numbers(self, key: str, n_elements: int, element_bytes: int) -> None:
        """Step over an array of numbers."""
        self._check_array(key, n_elements, element_bytes)
        self.skip(n_elements * element_bytes)

    def skip_strings(self, key: str, n_elements: int) -> None:
        """Step over an array of strings.

        This loop is the cost of reading a header (about 80 ns per word), hence the plain
        local variables: it runs inside one window until a length lies outside of it.
        """
        self._n_string_elements += n_elements
        if self._n_string_elements > MAX_STRING_ELEMENTS:
            raise self.source.damaged(
                "gguf_absurd_length", f"with '{key}' it claims {self._n_string_elements} strings"
            )
        self._check_array(key, n_elements, 8)
        source, unpack, pos, index = self.source, _U64, self.pos, 0
        rest = range(n_elements)
        while rest:
            offset = source.move_to(pos, 8)
            window, base = source.window, pos - offset
            try:
                for index in rest:  # noqa: B007 - tells where to resume
                    offset += 8 + unpack(window, offset)[0]
                rest = range(0)
            except (struct.error, IndexError, OverflowError):
                rest = range(index, n_elements)  # this length lies outside the window
            pos = base + offset
        self.pos = pos
        self.skip(0)

    def _check_array(self, key: str, n_elements: int, element_bytes: int) -> None:
        n_bytes = n_elements * element_bytes
        if n_bytes > MAX_HEADER_BYTES:
            raise self.source.damaged(
                "gguf_absurd_length", f"the list '{key}' claims {n_elements} elements"
            )
        if self.pos + n_bytes > self.source.size:
            raise self.source.truncated()
