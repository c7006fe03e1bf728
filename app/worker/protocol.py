"""NDJSON between the core and a worker process: the only thing the two share besides the domain.

One JSON object a line, UTF-8, at most ``MAX_LINE_BYTES``; the field ``type`` is the tag.
Unknown fields are ignored, unknown types refused. The child speaks first (``hello``).
"""

from typing import TypeVar

import msgspec

from app.worker.message import PROTOCOL_VERSION, Message
from app.worker.replies import (
    Bye,
    DryRunFinished,
    Failed,
    GenerateFinished,
    GenerateProgress,
    GenerateStarted,
    Heartbeat,
    Hello,
    LoadFinished,
    LoadProgress,
    LoadStarted,
    Log,
    OutputChecked,
    Reply,
    ServeFinished,
    ServeProgress,
    ServeStarted,
    Speculated,
    TemplateChecked,
    TemplateFinding,
    Token,
    TokenizeFinished,
    TrialFinished,
    TrialProgress,
    TrialSample,
    TrialStarted,
)
from app.worker.requests import (
    SAMPLING_RANGES,
    SEED_RANGE,
    Cancel,
    ChatMessage,
    CheckOutput,
    CheckTemplate,
    DryRun,
    Generate,
    Load,
    Request,
    RunTrial,
    Sampling,
    Serve,
    SetPace,
    Shutdown,
    Speculate,
    Tokenize,
)

# The one door for both sides: what is asked lies in ``requests``, what is answered in ``replies``.
__all__ = [
    "MAX_LINE_BYTES",
    "NO_BREAKDOWN",
    "PROTOCOL_VERSION",
    "SAMPLING_RANGES",
    "SEED_RANGE",
    "Bye",
    "Cancel",
    "ChatMessage",
    "CheckOutput",
    "CheckTemplate",
    "Codec",
    "DryRun",
    "DryRunFinished",
    "Failed",
    "Generate",
    "GenerateFinished",
    "GenerateProgress",
    "GenerateStarted",
    "Heartbeat",
    "Hello",
    "Load",
    "LoadFinished",
    "LoadProgress",
    "LoadStarted",
    "Log",
    "Message",
    "OutputChecked",
    "ProtocolError",
    "Reply",
    "Request",
    "RunTrial",
    "Sampling",
    "Serve",
    "ServeFinished",
    "ServeProgress",
    "ServeStarted",
    "SetPace",
    "Shutdown",
    "Speculate",
    "Speculated",
    "TemplateChecked",
    "TemplateFinding",
    "Token",
    "Tokenize",
    "TokenizeFinished",
    "TrialFinished",
    "TrialProgress",
    "TrialSample",
    "TrialStarted",
    "decode_reply",
    "decode_request",
]

MAX_LINE_BYTES = 1 << 20
# error code of a dry run where the build cannot say what it would allocate
NO_BREAKDOWN = "no_breakdown"

T = TypeVar("T")


class ProtocolError(Exception):
    """A line that is not a message of this protocol; the text says what was wrong with it."""


class Codec:
    """Turns messages into lines and back. One per direction and side; numbers the lines."""

    def __init__(self) -> None:
        """Start counting at 0."""
        self._seq = 0

    def encode(self, message: Message, t_ns: int) -> bytes:
        """Return ``message`` as one line, stamped.

        Raises:
            ProtocolError: The line would exceed ``MAX_LINE_BYTES``.
        """
        stamped = msgspec.structs.replace(message, seq=self._seq, t_ns=t_ns)
        line = msgspec.json.encode(stamped) + b"\n"
        if len(line) > MAX_LINE_BYTES:
            msg = f"a {type(message).__name__} line of {len(line)} bytes exceeds {MAX_LINE_BYTES}"
            raise ProtocolError(msg)
        self._seq += 1
        return line


_REQUEST = msgspec.json.Decoder(Request)
_REPLY = msgspec.json.Decoder(Reply)


def decode_request(line: bytes) -> Request:
    """Return the request in ``line``.

    Raises:
        ProtocolError: It is not one of this protocol's requests.
    """
    return _decode(_REQUEST, line)


def decode_reply(line: bytes) -> Reply:
    """Return the reply in ``line``.

    Raises:
        ProtocolError: It is not one of this protocol's replies.
    """
    return _decode(_REPLY, line)


def _decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T:
    if len(line) > MAX_LINE_BYTES:
        msg = f"a line of {len(line)} bytes exceeds {MAX_LINE_BYTES}"
        raise ProtocolError(msg)
    try:
        message = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        msg = f"not a message: {error}: {line[:120]!r}"
        raise ProtocolError(msg) from error
    version = getattr(message, "v", None)
    if version != PROTOCOL_VERSION:
        msg = f"protocol version {version}, expected {PROTOCOL_VERSION}"
        raise ProtocolError(msg)
    return message
