"""An engine for conversations that answers from a script, with a small context if told so."""

from collections.abc import Callable, Iterator

from app.domain.errors import ErrorInfo
from app.domain.events import (
    ChatEvent,
    GenerationFinished,
    GenerationStarted,
    TokenGenerated,
)
from app.worker.protocol import ChatMessage, Sampling, TemplateChecked

CHARS_PER_TOKEN = 4


class ScriptedEngine:
    """Answers each question with the next text, word by word; the last one repeats.

    Attributes:
        asked: The prompts it got.
        n_ctx: Tokens its context holds; four characters are one.
        max_chars: Characters the protocol carries.
        crash_after: Words after which it dies, once.
        on_word: Called before each word.
    """

    def __init__(self, *answers: str, n_ctx: int = 4096, reasoning: str = "") -> None:
        """Answer with ``answers``, each after thinking ``reasoning``."""
        self.asked: list[tuple[ChatMessage, ...]] = []
        self.n_ctx = n_ctx
        self.crash_after: int | None = None
        self.on_word: Callable[[], None] = lambda: None
        self.checked = TemplateChecked(template="model", findings=())
        self.reason = "stop"
        self.is_closed = False
        self.max_chars = 1 << 20
        self._answers = list(answers) or ["yes"]
        self._reasoning = reasoning

    def check_template(self) -> TemplateChecked:
        """Return what the script says."""
        return self.checked

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Stream the next answer."""
        self.asked.append(messages)
        self.is_closed = False
        if sum(len(m.content) for m in messages) > self.max_chars:
            error = ErrorInfo(code="conversation_too_long", message="Too long.")
            yield GenerationFinished(reason="error", n_prompt=0, error=error)
            return
        n_prompt = sum(len(m.content) + len(m.reasoning) for m in messages) // CHARS_PER_TOKEN
        yield GenerationStarted(
            n_prompt=n_prompt, n_prompt_reused=0, n_ctx=self.n_ctx, template="model"
        )
        if n_prompt >= self.n_ctx:
            yield GenerationFinished(reason="context_full", n_prompt=n_prompt)
            return
        try:
            yield from self._words(n_prompt, max_tokens)
        finally:
            self.is_closed = True

    def _words(self, n_prompt: int, max_tokens: int | None) -> Iterator[ChatEvent]:
        if self._reasoning:
            yield TokenGenerated(text=self._reasoning, n_tok=0, kind="reasoning")
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        used = 0
        for n_tok, word in enumerate(answer.split(" "), 1):
            self.on_word()
            if self.crash_after is not None and n_tok > self.crash_after:
                self.crash_after = None
                error = ErrorInfo(code="crashed", message="The engine ended.", hint="Restart.")
                yield GenerationFinished(reason="error", n_prompt=n_prompt, error=error)
                return
            text = ("" if n_tok == 1 else " ") + word
            used += len(text)
            if n_prompt + used // CHARS_PER_TOKEN >= self.n_ctx:
                n_gen = self.n_ctx - n_prompt
                yield GenerationFinished(reason="context_full", n_prompt=n_prompt, n_gen=n_gen)
                return
            yield TokenGenerated(text=text, n_tok=n_tok)
            if n_tok == max_tokens:
                yield GenerationFinished(reason="length", n_prompt=n_prompt, n_gen=n_tok)
                return
        n_gen = len(answer.split(" "))
        yield GenerationFinished(reason=self.reason, n_prompt=n_prompt, n_gen=n_gen, ttft_ms=1.0)
