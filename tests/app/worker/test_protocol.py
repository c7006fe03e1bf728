"""The wire format, pinned by golden files: one line of every message type."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings

from app.worker import protocol
from tests.fakes.protocol_lines import REPLIES, REQUESTS
from tests.fakes.records import records

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "protocol"
ALL = [*REQUESTS, *REPLIES]


def golden_lines(name: str) -> list[bytes]:
    return (GOLDEN / f"{name}.ndjson").read_bytes().splitlines(keepends=True)


def encode(messages: list[protocol.Message]) -> list[bytes]:
    codec = protocol.Codec()
    return [codec.encode(m, t_ns=1_000 + i) for i, m in enumerate(messages)]


@pytest.mark.parametrize(("name", "messages"), [("requests", REQUESTS), ("replies", REPLIES)])
def test_wire_format_has_not_changed(name: str, messages: list[protocol.Message]) -> None:
    """Every message is encoded as in the golden file; a change needs a new version."""
    assert encode(messages) == golden_lines(name)


def test_golden_requests_decode() -> None:
    """The child understands every request."""
    assert [type(protocol.decode_request(x)) for x in golden_lines("requests")] == [
        type(m) for m in REQUESTS
    ]


def test_golden_replies_decode() -> None:
    """The parent understands every reply."""
    assert [type(protocol.decode_reply(x)) for x in golden_lines("replies")] == [
        type(m) for m in REPLIES
    ]


def test_golden_files_hold_every_message_type() -> None:
    """No type of the protocol is missing from the golden files."""
    known = {*protocol.Request.__args__, *protocol.Reply.__args__}
    assert {type(m) for m in ALL} == known


@given(records(protocol.LoadFinished))
@settings(max_examples=25)
def test_round_trip(message: protocol.LoadFinished) -> None:
    """What is sent is what arrives, numbered and stamped."""
    line = protocol.Codec().encode(msgspec.structs.replace(message, v=1), t_ns=5)
    expected = msgspec.structs.replace(message, v=1, seq=0, t_ns=5)
    assert protocol.decode_reply(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage\n",
        b"[]\n",
        b'{"type":"no.such.type","v":1}\n',
        b'{"type":"bye"\n',
        b'{"type":"bye","v":2}\n',
        b'{"type":"token","v":1,"text":7,"n_tok":1}\n',
        b'{"type":"log","v":1,"level":"\xff","text":""}\n',
        b'{"type":"log","v":1,"level":"info","text":"' + b"x" * protocol.MAX_LINE_BYTES + b'"}\n',
    ],
)
def test_lines_that_are_no_messages_are_refused(line: bytes) -> None:
    """Garbage, unknown types, other versions and oversized lines end in one exception."""
    with pytest.raises(protocol.ProtocolError):
        protocol.decode_reply(line)


def test_unknown_fields_are_ignored() -> None:
    """A newer side may say more."""
    line = b'{"type":"load.progress","v":1,"frac":0.5,"eta_s":3}\n'
    assert protocol.decode_reply(line) == protocol.LoadProgress(frac=0.5)


def test_oversized_message_is_not_sent() -> None:
    """The sender notices, and its numbering goes on unbroken."""
    codec = protocol.Codec()
    with pytest.raises(protocol.ProtocolError):
        codec.encode(protocol.Tokenize(text="x" * protocol.MAX_LINE_BYTES), 0)
    assert b'"seq":0' in codec.encode(protocol.Cancel(), 0)
