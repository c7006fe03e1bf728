"""What the context is filled with: the numbers behind the context gauge."""

from collections.abc import Sequence

from app.domain.record import Record
from app.worker.protocol import ChatMessage, TokenizeFinished


class ContextUse(Record, frozen=True, kw_only=True):
    """Tokens of the prompt, by what they are.

    Attributes:
        n_ctx: Tokens the context holds.
        system_tok: System prompt (and summary of turns left out).
        user_tok: The user's turns, attachments included.
        assistant_tok: The model's turns.
        markers_tok: What the chat template writes around them.
        free_tok: Room for the answer; negative = that much is too much.
    """

    n_ctx: int
    system_tok: int
    user_tok: int
    assistant_tok: int
    markers_tok: int
    free_tok: int


def context_use(
    messages: Sequence[ChatMessage], counted: TokenizeFinished, n_ctx: int
) -> ContextUse:
    """Return how the prompt of ``messages`` fills a context of ``n_ctx`` tokens.

    Args:
        messages: The conversation as the model sees it.
        counted: Its tokens (``Chat.count_prompt``).
        n_ctx: Tokens the context holds.
    """
    by_role = {"system": 0, "user": 0, "assistant": 0}
    for message, n_tok in zip(messages, counted.per_message, strict=True):
        by_role[message.role] = by_role.get(message.role, 0) + n_tok
    return ContextUse(
        n_ctx=n_ctx,
        system_tok=by_role["system"],
        user_tok=by_role["user"],
        assistant_tok=by_role["assistant"],
        markers_tok=max(0, counted.n_tok - sum(by_role.values())),
        free_tok=n_ctx - counted.n_tok,
    )
