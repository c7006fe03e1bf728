"""Turns a conversation into tokens, with the model's own template where it has one."""

import ctypes
from collections.abc import Sequence
from typing import Any

from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from app.domain.causes import shorten
from app.domain.outcome import Outcome
from app.worker.cancel import EngineFailure
from app.worker.engine import Model
from app.worker.native import llama
from app.worker.protocol import ChatMessage


def build_prompt(model: Model, messages: Sequence[ChatMessage]) -> tuple[list[int], str]:
    """Return the prompt's tokens and how it was built: ``model`` or ``text``.

    A model without a template gets the plain texts one below the other, and completes them.

    Raises:
        EngineFailure: The template refuses the conversation.
    """
    source = llama.llama_model_chat_template(model.handle, None)
    if not source:
        text = "\n".join(m.content for m in messages)
        return tokenize(model, text, parse_special=False), "text"
    text = render(source.decode(errors="replace"), messages, model)
    bos = token_text(model, llama.llama_vocab_bos(model.vocab))
    # most templates write the first token themselves; it must not come twice
    add_special = not (bos and text.startswith(bos))
    return tokenize(model, text, add_special=add_special, parse_special=True), "model"


def render(template: str, messages: Sequence[ChatMessage], model: Model) -> str:
    """Return the conversation as the template writes it, in a sandbox.

    Some templates refuse a system message; it then goes before the first user message.

    Raises:
        EngineFailure: The template refuses the conversation either way.
    """
    turns = [{"role": m.role, "content": m.content} for m in messages]
    try:
        return _render(template, turns, model)
    except Exception as error:  # noqa: BLE001 - a template can raise anything
        first = error
    if len(turns) > 1 and turns[0]["role"] == "system":
        merged = f"{turns[0]['content']}\n\n{turns[1]['content']}"
        turns[:2] = [{"role": turns[1]["role"], "content": merged}]
        try:
            return _render(template, turns, model)
        except Exception as error:  # noqa: BLE001 - as above
            first = error
    message = f"The model's chat template refused the conversation: {shorten(str(first))}"
    hint = "Start a new conversation, or use a model with another template."
    raise EngineFailure(Outcome.UNSUPPORTED, "chat_template", message, hint) from first


def tokenize(
    model: Model, text: str, *, add_special: bool = True, parse_special: bool = False
) -> list[int]:
    """Return the tokens of ``text``."""
    data = text.encode()
    size = len(data) + 8
    while True:
        tokens = (ctypes.c_int32 * size)()
        count = llama.llama_tokenize(
            model.vocab, data, len(data), tokens, size, add_special, parse_special
        )
        if count >= 0:
            return list(tokens[:count])
        size = -count


def token_bytes(model: Model, token: int, *, special: bool = False) -> bytes:
    """Return the bytes of ``token``; control tokens have some only with ``special``."""
    size = 64
    while True:
        buffer = ctypes.create_string_buffer(size)
        count = llama.llama_token_to_piece(model.vocab, token, buffer, size, 0, special)
        if count >= 0:
            return buffer.raw[:count]
        size = -count


def token_text(model: Model, token: int) -> str:
    """Return the text of a special token, empty where the vocabulary has none."""
    return token_bytes(model, token, special=True).decode(errors="replace") if token >= 0 else ""


def _render(template: str, turns: list[dict[str, str]], model: Model) -> str:
    formatter: Any = Jinja2ChatFormatter(
        template=template,
        eos_token=token_text(model, llama.llama_vocab_eos(model.vocab)),
        bos_token=token_text(model, llama.llama_vocab_bos(model.vocab)),
    )
    return str(formatter(messages=turns).prompt)
