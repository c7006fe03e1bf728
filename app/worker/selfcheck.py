"""Whether settings leave what the model says as it is: a short comparison of numbers.

A fixed text is read twice, with the settings in question and with a plain f16 cache without flash
attention; after each eighth of it the distributions of the next token are compared. Where the
loaded weights cannot be read with such a cache, a second copy of them serves for that.
"""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, Settings
from app.worker.batch import Tokens, decode_all
from app.worker.cancel import EngineFailure
from app.worker.engine import Engine, Model
from app.worker.native import llama
from app.worker.prompt import tokenize
from app.worker.protocol import CheckOutput, Message, OutputChecked, TrialProgress

N_PLACES = 8
MIN_TOK = 2 * N_PLACES
_TEXT = (
    "The library of the small town had been closed for eleven winters when the new keeper came. "
    "She counted the shelves twice, wrote 4,096 into a ledger, and then began with the letters. "
    "Most of them asked for the same thing: a map of the river before the dam was built, when "
    "the mill still stood and the ferry cost three coins. One letter was different. It said: "
    '"Whoever opens this room again will find that the clock runs backwards, but only at night." '
    "She did not believe it. On the third evening she stayed, put a candle on the table and "
    "watched. At ten past nine the hands stopped; at a quarter past nine they moved again, and "
    "what they showed was a quarter past nine of the day before. She opened the window. Below, "
    "on the dark water, the ferry was crossing, and somebody on it was waving with a lamp. "
)
Logits = npt.NDArray[np.float64]


def check_output(
    engine: Engine, request: CheckOutput, send: Callable[[Message], None]
) -> OutputChecked:
    """Return how far the settings of ``request`` move the model's next tokens.

    Raises:
        EngineFailure: The engine failed, or values are not numbers.
    """
    model = engine.loaded()
    tokens = text_tokens(model, max(MIN_TOK, request.n_tok))
    settings = _sized(request.settings, len(tokens))
    send(TrialProgress(phase="warm_up"))
    expected = _expected(engine, model, request, tokens, send)
    send(TrialProgress(phase="warm_up"))
    found = _next_tokens(engine, model, settings, tokens)
    if not all(np.isfinite(logits).all() for logits in (*expected, *found)):
        message = "With these settings the model computes values that are not numbers."
        hint = "Use other settings: its answers would be noise."
        raise EngineFailure(Outcome.UNSUPPORTED, "nan_logits", message, hint)
    apart = [_divergence_nats(p, q) for p, q in zip(expected, found, strict=True)]
    same = [int(np.argmax(p) == np.argmax(q)) for p, q in zip(expected, found, strict=True)]
    return OutputChecked(
        kl_mean_nats=sum(apart) / len(apart),
        kl_max_nats=max(apart),
        same_top=sum(same),
        n_places=len(apart),
        n_tok=len(tokens),
    )


def text_tokens(model: Model, n_tok: int) -> list[int]:
    """Return the fixed text as tokens; where it comes to too few, fixed numbers."""
    has_tokenizer = llama.llama_vocab_type(model.vocab) != llama.LLAMA_VOCAB_TYPE_NONE
    tokens = tokenize(model, _TEXT) if has_tokenizer else []
    if len(tokens) < MIN_TOK:
        tokens = [(7 * i + 3) % model.n_vocab for i in range(MIN_TOK)]
    return tokens[: max(MIN_TOK, min(n_tok, len(tokens)))]


def _expected(
    engine: Engine,
    model: Model,
    request: CheckOutput,
    tokens: list[int],
    send: Callable[[Message], None],
) -> list[Logits]:
    """Return the logits of a plain cache: on the loaded weights, or on others beside them."""
    settings = _sized(request.reference or request.settings, len(tokens))
    plain = msgspec.structs.replace(settings, type_k="f16", type_v="f16", flash_attn=FlashAttn.OFF)
    if request.reference is None:
        return _next_tokens(engine, model, plain, tokens)

    def still_reading(_: float) -> None:
        send(TrialProgress(phase="warm_up"))

    with engine.beside(model.path, plain, still_reading) as other:
        return _next_tokens(engine, other, plain, tokens)


def _sized(settings: Settings, n_tok: int) -> Settings:
    """Return ``settings`` with a context for the text alone: the check must never run out."""
    n_batch = min(settings.n_batch, 512)
    return msgspec.structs.replace(
        settings,
        n_ctx=-(-(n_tok + 1) // 256) * 256,
        n_batch=n_batch,
        n_ubatch=min(settings.n_ubatch, n_batch),
        n_seq_max=1,
    )


def _next_tokens(
    engine: Engine, model: Model, settings: Settings, tokens: list[int]
) -> list[Logits]:
    """Return the logits after each eighth of the text."""
    found = []
    ends = [len(tokens) * (i + 1) // N_PLACES for i in range(N_PLACES)]
    with engine.context(model, settings) as context:
        start = 0
        for end in ends:
            part = Tokens([tokens[start:end]], start)
            decode_all(context, part.batches(settings.n_batch), engine)
            logits: Any = llama.llama_get_logits_ith(context.handle, -1)
            found.append(np.ctypeslib.as_array(logits, (model.n_vocab,)).astype(np.float64))
            start = end
    return found


def _divergence_nats(expected: Logits, found: Logits) -> float:
    """Return KL(expected ‖ found) of two sets of logits, nats."""
    log_p, log_q = _log_softmax(expected), _log_softmax(found)
    return max(0.0, float(np.sum(np.exp(log_p) * (log_p - log_q))))


def _log_softmax(logits: Logits) -> Logits:
    shifted: Logits = logits - logits.max()
    result: Logits = shifted - math.log(float(np.exp(shifted).sum()))
    return result
