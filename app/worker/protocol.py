"""NDJSON between the core and a worker process: the only thing the two share besides the domain.

One JSON object a line, UTF-8, at most ``MAX_LINE_BYTES``; the field ``type`` is the tag.
Unknown fields are ignored, unknown types refused. The child speaks first (``hello``).
"""

from typing import TypeVar

import msgspec

from app.domain.errors import ErrorInfo
from app.domain.machine import EngineInfo
from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.trial import Sample, Workload

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 1 << 20
# error code of a dry run where the build cannot say what it would allocate
NO_BREAKDOWN = "no_breakdown"

T = TypeVar("T")


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


# --- parent to child ---------------------------------------------------------------------


class Load(Message, frozen=True, kw_only=True, tag="load"):
    """Allocate the weights as ``settings`` says (any earlier model is released first).

    Attributes:
        model_path: First shard of the model.
        settings: Requested settings; context-level ones are not applied yet.
    """

    model_path: str
    settings: Settings


class DryRun(Message, frozen=True, kw_only=True, tag="dry_run"):
    """Plan ``settings`` without allocating; the header-only model is kept for the next one."""

    model_path: str
    settings: Settings


class RunTrial(Message, frozen=True, kw_only=True, tag="trial"):
    """Create a context on the loaded weights, warm up and time ``workload``."""

    settings: Settings
    workload: Workload
    min_reps: int
    max_reps: int
    max_s: float


class ChatMessage(Record, frozen=True, kw_only=True):
    """One turn of a conversation: ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


class Sampling(Record, frozen=True, kw_only=True):
    """llama.cpp's sampler chain; ``temperature`` 0 is greedy, ``seed`` ``None`` is random."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    seed: int | None = None


class Generate(Message, frozen=True, kw_only=True, tag="generate"):
    """Answer a conversation on the loaded weights, streaming ``token`` lines.

    Attributes:
        settings: Context settings; the context is re-used while they do not change.
        messages: The conversation; rendered with the model's own template.
        max_tokens: Most tokens to generate; ``None`` = until the model or the context ends.
        sampling: Sampler chain.
        stop: Strings that end the answer (not part of it).
    """

    settings: Settings
    messages: tuple[ChatMessage, ...]
    max_tokens: int | None = None
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()


class Tokenize(Message, frozen=True, kw_only=True, tag="tokenize"):
    """Count the tokens of ``text`` with the loaded model's vocabulary."""

    text: str


class Cancel(Message, frozen=True, kw_only=True, tag="cancel"):
    """Stop the running request as soon as the engine allows; it ends as ``cancelled``."""


class Shutdown(Message, frozen=True, kw_only=True, tag="shutdown"):
    """Release everything, say ``bye`` and end."""


# --- child to parent ---------------------------------------------------------------------


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    """First line of a child."""

    protocol: int
    app_version: str
    pid: int
    engine: EngineInfo


class LoadStarted(Message, frozen=True, kw_only=True, tag="load.started"):
    """The engine begins to read the weights."""


class LoadProgress(Message, frozen=True, kw_only=True, tag="load.progress"):
    """Share of the weights read, 0–1 (with mmap the engine reports few steps)."""

    frac: float


class LoadFinished(Message, frozen=True, kw_only=True, tag="load.finished"):
    """The weights are in place."""

    requested: Settings
    effective: Settings
    elapsed_ns: int


class DryRunFinished(Message, frozen=True, kw_only=True, tag="dry_run.finished"):
    """What ``settings`` would allocate, per device (``host`` = RAM), without verdicts.

    ``refused`` holds the engine's reason when it would not create the context.
    """

    devices: tuple[DeviceMemory, ...]
    effective: Settings | None
    elapsed_ns: int
    refused: ErrorInfo | None = None


class TrialStarted(Message, frozen=True, kw_only=True, tag="trial.started"):
    """The context exists.

    Attributes:
        effective: Settings the engine really uses.
        devices: Bytes allocated per device, as the engine counts them.
    """

    effective: Settings
    devices: tuple[DeviceMemory, ...]


class TrialProgress(Message, frozen=True, kw_only=True, tag="trial.progress"):
    """Phase ``context``, ``warm_up``, ``prefill``, ``decode``; share done where known."""

    phase: str
    frac: float | None = None


class TrialSample(Message, frozen=True, kw_only=True, tag="sample"):
    """One timed pass, as it ends: a crash later loses nothing measured before."""

    phase: str
    sample: Sample


class TrialFinished(Message, frozen=True, kw_only=True, tag="trial.finished"):
    """All repetitions are done."""

    prefill: tuple[Sample, ...]
    decode: tuple[Sample, ...]


class GenerateStarted(Message, frozen=True, kw_only=True, tag="generate.started"):
    """The prompt is built.

    Attributes:
        n_prompt: Its tokens.
        n_reused: Of these, tokens still valid in the cache.
        template: ``model`` (the file's own), ``text`` (no template: plain completion).
    """

    n_prompt: int
    n_reused: int
    template: str


class Token(Message, frozen=True, kw_only=True, tag="token"):
    """Text that has become complete, and how many tokens were generated so far."""

    text: str
    n_tok: int


class GenerateFinished(Message, frozen=True, kw_only=True, tag="generate.finished"):
    """The answer ended: ``stop``, ``length``, ``context_full`` or ``cancelled``."""

    reason: str
    n_prompt: int
    n_reused: int
    n_gen: int
    ttft_ns: int | None
    prefill_ns: int
    decode_ns: int


class TokenizeFinished(Message, frozen=True, kw_only=True, tag="tokenize.finished"):
    """Token count of the text asked for."""

    n_tok: int


class Heartbeat(Message, frozen=True, kw_only=True, tag="heartbeat"):
    """The child's Python side lives (1 Hz); says nothing about progress."""


class Log(Message, frozen=True, kw_only=True, tag="log"):
    """A line of the engine's log: ``debug``, ``info``, ``warn`` or ``error``."""

    level: str
    text: str


class Failed(Message, frozen=True, kw_only=True, tag="error"):
    """The running request failed; the child lives on unless it says otherwise by ending."""

    outcome: Outcome
    error: ErrorInfo


class Bye(Message, frozen=True, kw_only=True, tag="bye"):
    """Last line of an orderly end."""


Request = Load | DryRun | RunTrial | Generate | Tokenize | Cancel | Shutdown
Reply = (
    Hello
    | LoadStarted
    | LoadProgress
    | LoadFinished
    | DryRunFinished
    | TrialStarted
    | TrialProgress
    | TrialSample
    | TrialFinished
    | GenerateStarted
    | Token
    | GenerateFinished
    | TokenizeFinished
    | Heartbeat
    | Log
    | Failed
    | Bye
)


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
