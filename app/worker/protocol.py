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
from app.domain.pacing import Pace
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
    """One turn of a conversation: ``role`` is ``system``, ``user`` or ``assistant``.

    ``reasoning`` is what an assistant thought before ``content``; templates that drop the
    reasoning of earlier turns do so themselves.
    """

    role: str
    content: str
    reasoning: str = ""


class Sampling(Record, frozen=True, kw_only=True):
    """llama.cpp's sampler chain; ``temperature`` 0 is greedy, ``seed`` ``None`` is random.

    Attributes:
        repeat_last_n: Tokens that repeat penalty and DRY look back.
        dry_multiplier: Strength of DRY (repeated sequences); 0 = off.
        dry_base: Growth of DRY's penalty per token of the repetition.
        dry_allowed_length: Longest repetition without penalty, tokens.
        xtc_probability: How often XTC drops the likeliest tokens, 0–1; 0 = off.
        xtc_threshold: Probability above which XTC may drop a token, 0–0.5.
        grammar: GBNF text the answer must follow; empty = none.
        json_schema: JSON schema the answer must follow (``grammar`` is then ignored).
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    seed: int | None = None
    grammar: str = ""
    json_schema: str = ""


class Generate(Message, frozen=True, kw_only=True, tag="generate"):
    """Answer a conversation on the loaded weights, streaming ``token`` lines.

    Attributes:
        settings: Context settings; the context is re-used while they do not change.
        messages: The conversation; a last turn of the assistant is gone on with.
        max_tokens: Most tokens to generate; ``None`` = until the model or the context ends.
        sampling: Sampler chain.
        stop: Strings that end the answer (not part of it).
        template: Who writes the prompt: empty = the model's own template, ``text`` = nobody
            (plain completion), or the name of one of llama.cpp's built-in templates.
        pace: How much of the time to work; ``set_pace`` changes it underway.
    """

    settings: Settings
    messages: tuple[ChatMessage, ...]
    max_tokens: int | None = None
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    template: str = ""
    pace: Pace = Pace()


class SetPace(Message, frozen=True, kw_only=True, tag="set_pace"):
    """Work at another pace from the next token on; not a request of its own, no reply."""

    pace: Pace


class Tokenize(Message, frozen=True, kw_only=True, tag="tokenize"):
    """Count the tokens of ``text`` with the loaded model's vocabulary.

    Attributes:
        text: Any text.
        messages: Count this conversation's prompt instead, and each turn's text alone.
        template: As in ``generate``.
    """

    text: str = ""
    messages: tuple[ChatMessage, ...] = ()
    template: str = ""


class CheckTemplate(Message, frozen=True, kw_only=True, tag="check_template"):
    """Check how the loaded model's template writes two turns, without decoding anything."""

    template: str = ""


class CheckOutput(Message, frozen=True, kw_only=True, tag="check_output"):
    """Compare what the model would say next with that of a plain f16 cache, on a fixed text.

    Attributes:
        settings: The settings in question; the loaded weights stay as they are.
        n_tok: Tokens of text to read, at most.
    """

    settings: Settings
    n_tok: int


class Speculate(Message, frozen=True, kw_only=True, tag="speculate"):
    """Time greedy decode with and without drafted tokens, in turns, on the loaded weights.

    Attributes:
        settings: Context settings of the loaded model.
        draft_path: First shard of a draft model; empty = drafts are looked up in the text so far.
        draft_settings: How the draft model is loaded.
        n_draft: Tokens drafted at once, at most.
        n_gen: Tokens per pass.
        n_turns: Passes of each kind.
        max_s: Soft bound of the timed part, seconds; three turns are run regardless.
    """

    settings: Settings
    draft_path: str
    draft_settings: Settings
    n_draft: int
    n_gen: int
    n_turns: int
    max_s: float


class Serve(Message, frozen=True, kw_only=True, tag="serve"):
    """Load a model and serve it over HTTP on loopback until ``cancel``.

    Attributes:
        model_path: First shard of the model.
        settings: Requested settings, load level and context level.
        alias: Name of the model towards clients.
        port: Port; 0 = any free one.
        token: What clients must send as bearer token.
    """

    model_path: str
    settings: Settings
    alias: str
    port: int
    token: str


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
        template: ``model`` (the file's own), ``text`` (no template: plain completion), or the
            name of the built-in template that was used instead.
        n_ctx: Tokens the context holds.
    """

    n_prompt: int
    n_reused: int
    template: str
    n_ctx: int = 0


class GenerateProgress(Message, frozen=True, kw_only=True, tag="generate.progress"):
    """Phase ``template``, ``context`` or ``prefill``; in prefill the prompt tokens done."""

    phase: str
    n_done: int = 0


class Token(Message, frozen=True, kw_only=True, tag="token"):
    """Text that has become complete, and how many tokens were generated so far.

    ``kind`` is ``answer``, ``reasoning`` or ``tool_call``.
    """

    text: str
    n_tok: int
    kind: str = "answer"


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
    """Token count of the text or prompt asked for, and of each turn's text alone."""

    n_tok: int
    per_message: tuple[int, ...] = ()


class TemplateFinding(Record, frozen=True, kw_only=True):
    """Something wrong with a chat template.

    Attributes:
        error: What it is and what the user can do.
        stop: A string that would end the answer where the template does; empty = none.
    """

    error: ErrorInfo
    stop: str = ""


class TemplateChecked(Message, frozen=True, kw_only=True, tag="check_template.finished"):
    """What is wrong with the template.

    Attributes:
        template: As in ``generate.started``.
        findings: What is wrong, worst first; empty = nothing.
        turn_end: Text that ends an assistant's turn, as the template writes it.
        builtin: The built-in template llama.cpp takes it for; empty = none.
    """

    template: str
    findings: tuple[TemplateFinding, ...]
    turn_end: str = ""
    builtin: str = ""


class OutputChecked(Message, frozen=True, kw_only=True, tag="check_output.finished"):
    """How far the distributions of the next token lie apart.

    Attributes:
        kl_mean_nats: Mean Kullback-Leibler divergence from the reference, nats.
        kl_max_nats: Largest of them.
        same_top: Places at which both find the same token likeliest.
        n_places: Places compared.
        n_tok: Tokens of text read.
    """

    kl_mean_nats: float
    kl_max_nats: float
    same_top: int
    n_places: int
    n_tok: int


class Speculated(Message, frozen=True, kw_only=True, tag="speculate.finished"):
    """Passes without and with drafts, taken in turns.

    Attributes:
        plain: Passes without.
        drafted: Passes with.
        n_drafted: Tokens drafted in all passes.
        n_accepted: Of these, tokens the model would have written itself.
        same_output: Whether both wrote the same tokens.
    """

    plain: tuple[Sample, ...]
    drafted: tuple[Sample, ...]
    n_drafted: int
    n_accepted: int
    same_output: bool


class ServeStarted(Message, frozen=True, kw_only=True, tag="serve.started"):
    """The server accepts requests.

    Attributes:
        port: Where, on 127.0.0.1.
        effective: Settings the engine really uses.
        devices: Bytes allocated per device, as the engine counts them.
    """

    port: int
    effective: Settings
    devices: tuple[DeviceMemory, ...]


class ServeProgress(Message, frozen=True, kw_only=True, tag="serve.progress"):
    """Requests so far, and how many of them are being answered now."""

    n_requests: int
    n_active: int


class ServeFinished(Message, frozen=True, kw_only=True, tag="serve.finished"):
    """The server has stopped."""

    n_requests: int


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


Request = (
    Load
    | DryRun
    | RunTrial
    | Generate
    | SetPace
    | Tokenize
    | CheckTemplate
    | CheckOutput
    | Speculate
    | Serve
    | Cancel
    | Shutdown
)
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
    | GenerateProgress
    | Token
    | GenerateFinished
    | TokenizeFinished
    | TemplateChecked
    | OutputChecked
    | Speculated
    | ServeStarted
    | ServeProgress
    | ServeFinished
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
