"""Tiny models with a family's chat template and special tokens, and a child that runs them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from app.domain.settings import LoadMode, Settings
from app.rig.process import Final, WorkerProcess
from app.worker import protocol
from tests.fakes.model_tables import Value
from tests.fakes.models import _vocabulary, make_model

N_VOCAB = 320
SETTINGS = Settings(n_gpu_layers=0, n_ctx=512, n_threads=1, load_mode=LoadMode.NONE)
GREEDY = protocol.Sampling(temperature=0)
PATIENCE_S = 60.0
_CONTROL, _USER_DEFINED = 3, 4


class Family(NamedTuple):
    """A template family.

    Attributes:
        template: Its chat template.
        control: Its control tokens.
        end: The one that ends a turn.
        shown: Tokens with a text of their own.
    """

    template: str
    control: tuple[str, ...]
    end: str
    shown: tuple[str, ...] = ()


def _turns(head: str, tail: str, ask: str) -> str:
    return (
        "{% for m in messages %}" + head + "{{ m['content'] }}" + tail + "{% endfor %}"
        "{% if add_generation_prompt %}" + ask + "{% endif %}"
    )


_ROLE = "{{ m['role'] }}"
FAMILIES: dict[str, Family] = {
    "chatml": Family(
        _turns(f"<|im_start|>{_ROLE}\n", "<|im_end|>\n", "<|im_start|>assistant\n")
        + "{# <think></think> <tool_call></tool_call> #}",
        ("<|im_start|>", "<|im_end|>"),
        "<|im_end|>",
        ("<think>", "</think>", "<tool_call>", "</tool_call>"),
    ),
    "llama3": Family(
        _turns(
            f"<|start_header_id|>{_ROLE}<|end_header_id|>\n\n",
            "<|eot_id|>",
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
        ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        "<|eot_id|>",
    ),
    "gemma": Family(
        _turns(
            "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n",
            "<end_of_turn>\n",
            "<start_of_turn>model\n",
        ),
        ("<start_of_turn>", "<end_of_turn>"),
        "<end_of_turn>",
    ),
    "phi3": Family(
        _turns(f"<|{_ROLE}|>\n", "<|end|>\n", "<|assistant|>\n"),
        ("<|user|>", "<|assistant|>", "<|system|>", "<|end|>"),
        "<|end|>",
    ),
    "deepseek": Family(
        "{% for m in messages %}{% if m['role'] == 'assistant' %}<\uff5cAssistant\uff5c>"
        "{{ m['content'] }}<\uff5cend▁of▁sentence\uff5c>{% else %}<\uff5cUser\uff5c>"
        "{{ m['content'] }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<\uff5cAssistant\uff5c><think>\n{% endif %}",
        ("<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>", "<\uff5cend▁of▁sentence\uff5c>"),
        "<\uff5cend▁of▁sentence\uff5c>",
        ("<think>", "</think>"),
    ),
    "mistral": Family(
        "{% for m in messages %}{% if m['role'] == 'assistant' %} {{ m['content'] }}</s>"
        "{% else %}[INST] {{ m['content'] }} [/INST]{% endif %}{% endfor %}{# [TOOL_CALLS] #}"
        "{% if add_generation_prompt %} {% endif %}",
        ("[INST]", "[/INST]", "[TOOL_CALLS]"),
        "</s>",
    ),
    "harmony": Family(
        "{% for m in messages %}<|start|>{{ m['role'] }}"
        "{% if m['role'] == 'assistant' %}<|channel|>final{% endif %}<|message|>"
        "{{ m['content'] }}<|end|>{% endfor %}"
        "{# <|channel|>analysis<|message|> <|channel|>commentary to= <|channel|>final<|message|> #}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}",
        ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>", "<|call|>"),
        "<|return|>",
    ),
    "granite": Family(
        _turns(
            f"<|start_of_role|>{_ROLE}<|end_of_role|>",
            "<|end_of_text|>\n",
            "<|start_of_role|>assistant<|end_of_role|>",
        ),
        ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"),
        "<|end_of_text|>",
    ),
}


def chat_model(
    path: Path, family: str = "chatml", *, template: str | None = None, arch: str = "llama"
) -> Path:
    """Write a tiny model with random weights that speaks ``family``."""
    chosen = FAMILIES[family]
    source = chosen.template if template is None else template
    return make_model(path, arch, chat_template=source, extra=_specials(chosen))


def _specials(family: Family) -> dict[str, Value]:
    """The tiny vocabulary with its last words replaced by special ones."""
    vocabulary: dict[str, Any] = _vocabulary(N_VOCAB)
    tokens, kinds = vocabulary["tokenizer.ggml.tokens"], vocabulary["tokenizer.ggml.token_type"]
    words = [w for w in (*family.control, *family.shown) if w not in tokens]
    for index, word in zip(range(len(tokens) - len(words), len(tokens)), words, strict=True):
        tokens[index] = word
        kinds[index] = _CONTROL if word in family.control else _USER_DEFINED
    return {
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        # as converters write it: the end of a turn is the end of text
        "tokenizer.ggml.eos_token_id": tokens.index(family.end),
    }


def literal(text: str) -> str:
    """Return a grammar that lets a model write ``text`` and nothing else."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'root ::= "{quoted}"'


def ask(worker: WorkerProcess, request: protocol.Message) -> tuple[Final, list[protocol.Reply]]:
    """Return the last reply and those before it."""
    exchange = worker.ask(request, "test", lambda _: PATIENCE_S)
    seen: list[protocol.Reply] = []
    while True:
        try:
            reply = next(exchange)
        except StopIteration as stop:
            return stop.value, seen
        if reply is not None:
            seen.append(reply)


def load(worker: WorkerProcess, path: Path | str, settings: Settings = SETTINGS) -> None:
    """Load a model."""
    reply, _ = ask(worker, protocol.Load(model_path=str(path), settings=settings))
    assert isinstance(reply, protocol.LoadFinished), reply


def question(*texts: str, **fields: object) -> protocol.Generate:
    """Return a request whose messages are ``texts``, user and assistant in turn."""
    messages = tuple(
        protocol.ChatMessage(role="user" if i % 2 == 0 else "assistant", content=t)
        for i, t in enumerate(texts)
    )
    request = protocol.Generate(settings=SETTINGS, messages=messages, sampling=GREEDY)
    return msgspec.structs.replace(request, **fields)


def pieces(replies: list[protocol.Reply]) -> Iterator[tuple[str, str]]:
    """Yield the text of an answer, neighbouring pieces of one kind joined."""
    kind, text = "", ""
    for reply in replies:
        if isinstance(reply, protocol.Token) and reply.text:
            if reply.kind != kind and text:
                yield kind, text
                text = ""
            kind = reply.kind
            text += reply.text
    if text:
        yield kind, text
