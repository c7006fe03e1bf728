"""What every line between the core and a worker has."""

from app.domain.record import Record

PROTOCOL_VERSION = 1


class Message(Record, frozen=True, kw_only=True, tag_field="type"):
    """Base of every line.

    Attributes:
        v: Protocol version.
        seq: Counts the sender's lines from 0.
        t_ns: Sender's ``time.perf_counter_ns()``; system-wide, so both ends line up.
    """

    v: int = PROTOCOL_VERSION
    seq: int = 0
    t_ns: int = 0
