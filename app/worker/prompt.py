"""Turns a conversation into tokens, with the model's own template where it has one."""

import ctypes
import time
from collections.abc import Sequence
from typing import NamedTuple

from app.domain.causes import shorten
from app.domain.outcome import Outcome
from app.worker.cancel import EngineFailure
from app.worker.engine import Model
from app.worker.native import llama
from app.worker.pieces import MARKERS, REASONING, Marker, markers_of, open_marker
from app.worker.protocol import ChatMessage
from app.worker.template import MAX_S, TemplateProblem, render

MODEL, TEXT = "model", "text"
_MAX_BUILTINS = 256
_QUESTION = "0123456789-0123456789"


class Prompt(NamedTuple):
    """A conversation as the model reads it.

    Attributes:
        tokens: What to decode.
        template: Who wrote it: ``model``, ``text`` or the built-in template used instead.
        markers: Parts that its answers may have.
        inside: Reasoning that its end begins, if it does.
    """

    tokens: list[int]
    template: str
    markers: tuple[Marker, ...] = ()
    inside: Marker | None = None


def build_prompt(model: Model, messages: Sequence[ChatMessage], template: str = "") -> Prompt:
    """Return the prompt of a conversation.

    A model without a template gets the plain texts, and completes them. A last turn of the
    assistant is the beginning of the answer that is wanted.

    Args:
        model: Whose vocabulary and template.
        messages: The conversation.
        template: Empty = the model's own, ``text`` = none, or a built-in template's name.

    Raises:
        EngineFailure: The template refuses the conversation, or there is no such template.
    """
    source = template_source(model)
    if template == TEXT or not (source or template):
        return Prompt(tokenize(model, _plain(messages), parse_special=False), TEXT)
    text, used = write(model, messages, template)
    markers = markers_of(source)
    begun = text[_last_question_end(model, text, messages, template) :]
    if messages[-1:] and messages[-1].role == "assistant":
        more = _answer_begun(messages[-1], begun, markers)
        begun, text = begun + more, text + more
    bos = token_text(model, llama.llama_vocab_bos(model.vocab))
    # most templates write the first token themselves; it must not come twice
    add_special = not (bos and text.startswith(bos))
    tokens = tokenize(model, text, add_special=add_special, parse_special=True)
    return Prompt(tokens, used, markers, open_marker(markers, begun))


def _plain(messages: Sequence[ChatMessage]) -> str:
    """Return the texts one below the other, each answer where the model began it."""
    parts = (m.content if m.role == "assistant" else f"\n{m.content}" for m in messages)
    return "".join(parts).removeprefix("\n")


def write(
    model: Model, messages: Sequence[ChatMessage], template: str = "", *, wants_answer: bool = True
) -> tuple[str, str]:
    """Return the conversation as text and the name of the template that wrote it.

    Some templates refuse a system message; it then goes before the first user message. Where
    the model's own fails otherwise, the built-in one that llama.cpp takes it for is used.

    Args:
        model: Whose template.
        messages: The conversation; an answer begun at its end is left out.
        template: Empty = the model's own, or a built-in template's name.
        wants_answer: Whether to write the words that ask for an answer, too.

    Raises:
        EngineFailure: No template writes it.
    """
    if messages[-1:] and messages[-1].role == "assistant" and wants_answer:
        messages = messages[:-1]
    if template:
        text = builtin(template, messages, wants_answer=wants_answer)
        if text is None:
            known = ", ".join(builtin_names())
            message = f"llama.cpp has no built-in chat template {template!r}."
            raise EngineFailure(Outcome.UNSUPPORTED, "unknown_template", message, f"Known: {known}")
        return text, template
    source = template_source(model)
    try:
        return _by_model(model, source, messages, wants_answer=wants_answer), MODEL
    except TemplateProblem as problem:
        name = "" if problem.is_hostile else builtin_name(source)
        text = builtin(name, messages, wants_answer=wants_answer) if name else None
        if text is not None:
            return text, name
        what = "is not safe to use" if problem.is_hostile else "refused the conversation"
        message = f"The model's chat template {what}: {shorten(str(problem)).rstrip('.')}."
        hint = "Choose one of the built-in templates instead, e.g. chatml, or plain text."
        raise EngineFailure(Outcome.UNSUPPORTED, "chat_template", message, hint) from problem


def template_source(model: Model) -> str:
    """Return the model's own template, empty where it has none."""
    source = llama.llama_model_chat_template(model.handle, None)
    return source.decode(errors="replace") if source else ""


def builtin(name: str, messages: Sequence[ChatMessage], *, wants_answer: bool) -> str | None:
    """Return the conversation as the built-in template ``name`` writes it.

    ``name`` may also be a template's text: llama.cpp then uses the one it takes that for.
    ``None`` where llama.cpp knows neither.
    """
    texts = [(m.role.encode(), m.content.replace("\0", "").encode()) for m in messages]
    chat = (llama.llama_chat_message * len(texts))(*texts)
    size = 4096 + 2 * sum(len(content) for _, content in texts)
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = llama.llama_chat_apply_template(
            name.encode(), chat, len(texts), wants_answer, buffer, size
        )
        if length < 0:
            return None
        if length <= size:
            return buffer.raw[:length].decode(errors="replace")
        size = length


def builtin_name(source: str) -> str:
    """Return the built-in template llama.cpp takes ``source`` for; empty = none."""
    probe = (ChatMessage(role="user", content="a"), ChatMessage(role="assistant", content="b"))
    wanted = builtin(source, probe, wants_answer=True) if source else None
    if wanted is None:
        return ""
    return next((n for n in builtin_names() if builtin(n, probe, wants_answer=True) == wanted), "")


def builtin_names() -> list[str]:
    """Return the names of llama.cpp's built-in templates."""
    names = (ctypes.c_char_p * _MAX_BUILTINS)()
    count = llama.llama_chat_builtin_templates(names, _MAX_BUILTINS)
    return [n.decode() for n in names[: min(count, _MAX_BUILTINS)] if n]


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


def _by_model(
    model: Model, source: str, messages: Sequence[ChatMessage], *, wants_answer: bool
) -> str:
    """Try what some templates need: an empty list of tools, no system message."""
    turns = [_turn(m) for m in messages]
    merged = _merged(turns)
    deadline_s = time.monotonic() + MAX_S
    problem = None
    for attempt in (turns, merged) if merged != turns else (turns,):
        for tools in (None, ()):
            try:
                return render(
                    source,
                    attempt,
                    deadline_s,
                    add_generation_prompt=wants_answer,
                    bos_token=token_text(model, llama.llama_vocab_bos(model.vocab)),
                    eos_token=token_text(model, llama.llama_vocab_eos(model.vocab)),
                    enable_thinking=True,
                    tools=tools,
                    functions=tools,
                )
            except TemplateProblem as error:
                problem = error
                if error.is_hostile:
                    raise
    assert problem is not None
    raise problem


def _turn(message: ChatMessage) -> dict[str, str]:
    turn = {"role": message.role, "content": message.content}
    if message.reasoning:
        # the two names templates read it by
        turn |= {"reasoning_content": message.reasoning, "thinking": message.reasoning}
    return turn


def _merged(turns: list[dict[str, str]]) -> list[dict[str, str]]:
    if len(turns) < 2 or turns[0]["role"] != "system":
        return turns
    content = f"{turns[0]['content']}\n\n{turns[1]['content']}"
    return [{"role": turns[1]["role"], "content": content}, *turns[2:]]


def _last_question_end(
    model: Model, text: str, messages: Sequence[ChatMessage], template: str
) -> int:
    """Return where the last question ends: what follows asks for the answer.

    What asks is seen after another question: the words of this one may be in it ("hi" is in
    ``<think>``). A template that does not end as it ends there is searched.
    """
    asks = _asks(model, template)
    if asks and text.endswith(asks):
        return len(text) - len(asks)
    question = next((m.content.strip() for m in reversed(messages) if m.role == "user"), "")
    at = text.rfind(question) if question else -1
    return at + len(question) if at >= 0 else max(0, len(text) - 64)


def _asks(model: Model, template: str) -> str:
    """Return what a template writes after a question; empty = not known."""
    try:
        text, _ = write(model, (ChatMessage(role="user", content=_QUESTION),), template)
    except EngineFailure:
        return ""
    _, found, asks = text.rpartition(_QUESTION)
    return asks if found else ""


def _answer_begun(message: ChatMessage, begun: str, markers: Sequence[Marker]) -> str:
    """Return the beginning of an answer as the model would have written it."""
    opened = open_marker(markers, begun)
    if not message.reasoning:
        return (opened.close + "\n\n" if opened else "") + message.content
    marker = opened or next((m for m in markers if m.kind == REASONING), MARKERS[0])
    head = "" if opened else marker.open + "\n"
    tail = f"\n{marker.close}\n\n{message.content}" if message.content else ""
    return head + message.reasoning + tail
