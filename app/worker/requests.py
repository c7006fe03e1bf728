"""Lines from the core to a worker: what it asks for."""

from app.domain.pacing import Pace
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.trial import Workload
from app.worker.message import Message


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


SAMPLING_RANGES = {
    "temperature": (0.0, 100.0),
    "top_k": (0, 1 << 30),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "repeat_penalty": (0.01, 100.0),
    "repeat_last_n": (0, 1 << 20),
    "dry_multiplier": (0.0, 100.0),
    "dry_base": (1.0, 100.0),
    "dry_allowed_length": (0, 1 << 20),
    "xtc_probability": (0.0, 1.0),
    "xtc_threshold": (0.0, 1.0),
}
"""What each number of a sampler chain may be, ends included."""

SEED_RANGE = (0, (1 << 32) - 2)
"""Seeds that repeat an answer; the next one means "another each time" to llama.cpp."""


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
        reference: What to load beside them for the plain cache; ``None`` = the weights
            themselves serve.
    """

    settings: Settings
    n_tok: int
    reference: Settings | None = None


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
