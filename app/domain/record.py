"""The one base of every value that crosses a package, a process, a file or the database."""

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable value.

    Subclasses repeat ``frozen=True, kw_only=True``: msgspec does not inherit them. The
    constructor does not validate types, decoding does. Missing is ``None``, never 0.
    """


def encode_json(value: object) -> bytes:
    """Return ``value`` as one JSON document, UTF-8, keys in declaration order."""
    return msgspec.json.encode(value)
