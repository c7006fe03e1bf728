"""Identity of a model's content, whatever its files are called.

Reads the header and a few samples of the weights, so that it costs milliseconds for any size:
two files that differ only in weights between the samples would be taken for one.
"""

import hashlib
from collections.abc import Iterator

from app.domain.units import KIB, MIB
from app.gguf.header import Header
from app.gguf.source import Source

SAMPLE_BYTES = 64 * KIB
SAMPLES = 3
MAX_HASHED_HEADER_BYTES = 24 * MIB

_DIGEST_BYTES = 16


def fingerprint(headers: tuple[Header, ...]) -> str:
    """Return a hash over each shard's size, header and samples of its data, 32 hex digits.

    Raises:
        EnvironmentProblem: A file changed or can no longer be read.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for header in headers:
        digest.update(header.file_bytes.to_bytes(8, "little"))
        with Source(header.path) as source:
            if source.size != header.file_bytes:
                raise source.changed()
            for pos, n_bytes in _ranges(header):
                digest.update(source.read_at(pos, n_bytes))
    return digest.hexdigest()


def _ranges(header: Header) -> Iterator[tuple[int, int]]:
    """Header in steps of 1 MiB, then start, middle and end of the data."""
    header_bytes = min(header.data_pos, MAX_HASHED_HEADER_BYTES)
    for pos in range(0, header_bytes, MIB):
        yield pos, min(MIB, header_bytes - pos)
    room = max(0, header.file_bytes - header.data_pos - SAMPLE_BYTES)
    for sample in range(SAMPLES):
        yield header.data_pos + room * sample // (SAMPLES - 1), SAMPLE_BYTES
