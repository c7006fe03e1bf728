"""Looks at how a chat template writes two turns, and whether the model can end its own.

Wrong templates are the usual cause of rambling answers and of role names in them. This looks at
what is written, which takes milliseconds; whether the model plays along is for a trial answer.
"""

import re

from app.domain.errors import ErrorInfo
from app.worker.cancel import EngineFailure
from app.worker.engine import Model
from app.worker.native import llama
from app.worker.prompt import TEXT, builtin_name, template_source, token_text, tokenize, write
from app.worker.protocol import ChatMessage, TemplateChecked, TemplateFinding

_TURNS = (
    ChatMessage(role="user", content="first question"),
    ChatMessage(role="assistant", content="first answer"),
    ChatMessage(role="user", content="second question"),
)
_MARKER = re.compile(r"<[|\uff5c][^<>\s]+[|\uff5c]>|<(?:start|end)_of_turn>")
_ELSE = "Choose one of the built-in templates instead, e.g. chatml, or plain text."


def check_template(model: Model, template: str = "") -> TemplateChecked:
    """Return what is wrong with the template that would write ``model``'s prompts.

    Args:
        model: The loaded model.
        template: Empty = the model's own, ``text`` = none, or a built-in template's name.
    """
    source = template_source(model)
    if template == TEXT or not (source or template):
        return TemplateChecked(template=TEXT, findings=())
    name = builtin_name(source)
    try:
        text, used = write(model, _TURNS, template)
        silent, _ = write(model, _TURNS, template, wants_answer=False)
    except EngineFailure as failure:
        return TemplateChecked(
            template="", findings=(TemplateFinding(error=failure.error),), builtin=name
        )
    findings = [
        *_lost_text(text),
        *_foreign_markers(model, text),
        *_no_request(text, silent),
    ]
    end = _turn_end(model, text)
    if end and "<|channel|>" not in source:
        findings += _no_end(model, end)
    return TemplateChecked(template=used, findings=tuple(findings), turn_end=end, builtin=name)


def _lost_text(text: str) -> list[TemplateFinding]:
    at = 0
    for turn in _TURNS:
        at = text.find(turn.content, at)
        if at < 0 or text.count(turn.content) > 1:
            message = "The chat template loses or repeats what was said in earlier turns."
            return [_finding("template_loses_text", message, _ELSE)]
        at += len(turn.content)
    return []


def _foreign_markers(model: Model, text: str) -> list[TemplateFinding]:
    words = sorted(set(_MARKER.findall(text)))
    foreign = [w for w in words if len(_tokens(model, w)) > 1]
    if not foreign:
        return []
    message = f"The chat template uses markers this model does not know: {', '.join(foreign[:3])}."
    hint = f"It probably belongs to another model; role names may show up in answers. {_ELSE}"
    return [_finding("foreign_markers", message, hint)]


def _no_request(text: str, silent: str) -> list[TemplateFinding]:
    if text != silent:
        return []
    message = "The chat template does not ask for an answer, so the model may go on as the user."
    return [_finding("no_answer_prompt", message, _ELSE)]


def _turn_end(model: Model, text: str) -> str:
    """Return the text that ends the assistant's turn: a control token, or what comes next."""
    start = text.find(_TURNS[1].content)
    end = text.find(_TURNS[2].content)
    if not 0 <= start < end:
        return ""
    between = text[start + len(_TURNS[1].content) : end]
    for token in _tokens(model, between):
        if llama.llama_vocab_is_eog(model.vocab, token) or llama.llama_vocab_is_control(
            model.vocab, token
        ):
            return token_text(model, token)
    return between.strip()


def _no_end(model: Model, end: str) -> list[TemplateFinding]:
    tokens = _tokens(model, end)
    if len(tokens) == 1 and llama.llama_vocab_is_eog(model.vocab, tokens[0]):
        return []
    message = f"The model does not know that {end!r}, which ends its turns, ends the answer."
    hint = "Answers may not stop by themselves; RigTune can end them there."
    return [_finding("no_end_token", message, hint, stop=end)]


def _finding(code: str, message: str, hint: str, stop: str = "") -> TemplateFinding:
    return TemplateFinding(error=ErrorInfo(code=code, message=message, hint=hint), stop=stop)


def _tokens(model: Model, text: str) -> list[int]:
    return tokenize(model, text, add_special=False, parse_special=True)
