"""What to leave out of the prompt when a conversation has outgrown the context.

The user chooses: stop and say so, leave out the oldest turns, or have them summarised first.
Turns left out stay in the conversation; the model just does not see them.
"""

from collections.abc import Sequence
from enum import StrEnum

from app.domain.errors import ErrorInfo
from app.domain.events import ChatEvent, GenerationFinished
from app.worker.protocol import ChatMessage

_ROOM = 0.75
_CHARS_PER_TOKEN = 3.0
_SUMMARY_TOKENS = 256
_SUMMARY_QUESTION = (
    "Summarise this conversation in at most 120 words. Keep names, numbers, decisions and open "
    "questions. Write the summary only.\n\n"
)
_SUMMARY_HEAD = "Summary of the earlier conversation: "
TOO_LARGE = ErrorInfo(
    code="conversation_too_long",
    message="The system prompt and this message alone are larger than 1 MiB of text.",
    hint="Use a shorter message or system prompt.",
)


class Overflow(StrEnum):
    """What happens when the context is full."""

    STOP = "stop"
    DROP_OLDEST = "drop_oldest"
    SUMMARISE = "summarise"


def turns_to_drop(
    system: str, turns: Sequence[ChatMessage], n_dropped: int, n_tok: int, n_ctx: int
) -> int:
    """Return how many of the oldest turns to leave out, those left out before included.

    Afterwards about a quarter of the context is free. The turn that is being answered stays, and
    the first one seen is always the user's. The same number as before means that nothing helps.

    Args:
        system: System prompt.
        turns: All turns, oldest first.
        n_dropped: Turns left out already.
        n_tok: Tokens of the prompt without those.
        n_ctx: Tokens the context holds.
    """
    sizes = [len(t.content) + len(t.reasoning) for t in turns]
    n_chars = len(system) + sum(sizes[n_dropped:])
    per_char = n_tok / n_chars if n_chars else 1 / _CHARS_PER_TOKEN
    last_question = max((i for i, t in enumerate(turns) if t.role == "user"), default=0)
    dropped, left = n_dropped, float(n_tok)
    while dropped < last_question and left > _ROOM * n_ctx:
        left -= sizes[dropped] * per_char
        dropped += 1
        while dropped < last_question and turns[dropped].role != "user":
            left -= sizes[dropped] * per_char
            dropped += 1
    return dropped


def summary_request(
    turns: Sequence[ChatMessage], summary: str, n_ctx: int
) -> tuple[tuple[ChatMessage, ...], int]:
    """Return what to ask for a summary of ``turns``, and the most tokens it may have.

    Args:
        turns: Turns that will be left out.
        summary: Summary of those left out before.
        n_ctx: Tokens the context holds; the oldest part of a longer text is cut off.
    """
    text = "\n".join(f"{t.role}: {t.content}" for t in turns)
    if summary:
        text = f"{_SUMMARY_HEAD}{summary}\n{text}"
    max_tokens = min(_SUMMARY_TOKENS, n_ctx // 4)
    room = int((n_ctx - max_tokens) * _ROOM * _CHARS_PER_TOKEN) - len(_SUMMARY_QUESTION)
    question = _SUMMARY_QUESTION + text[max(0, len(text) - max(room, 0)) :]
    return (ChatMessage(role="user", content=question),), max_tokens


def with_summary(system: str, summary: str) -> str:
    """Return the system prompt with a summary of what was left out."""
    return "\n\n".join(p for p in (system, _SUMMARY_HEAD + summary if summary else "") if p)


def is_beyond_protocol(end: GenerationFinished) -> bool:
    """Whether a prompt was too large to be handed to the engine."""
    return end.error is not None and end.error.code == TOO_LARGE.code


def is_too_long(event: ChatEvent) -> bool:
    """Whether an answer ended before it began because its prompt is too long."""
    if not isinstance(event, GenerationFinished) or event.error is None or event.n_gen:
        return False
    return event.error.code == "context_full" or is_beyond_protocol(event)


def too_long(n_tok: int, n_ctx: int, *, is_alone: bool) -> ErrorInfo:
    """Return what to say of a prompt that does not fit.

    Args:
        n_tok: Tokens it has.
        n_ctx: Tokens the context holds.
        is_alone: Whether it is the last message with the system prompt only.
    """
    what = "The system prompt and this message alone need" if is_alone else "The chat needs"
    hint = "Use settings with a longer context, or a shorter message or system prompt."
    if not is_alone:
        hint = "Let the oldest turns be left out, begin a new chat, or use a longer context."
    message = f"{what} {n_tok} tokens; the context holds {n_ctx}."
    return ErrorInfo(code="context_full", message=message, hint=hint)
