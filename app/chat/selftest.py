"""Whether a model and its chat template get along: looked at first, then tried for two turns."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from app.chat.conversation import Answering, Conversation
from app.domain.errors import ErrorInfo
from app.domain.events import ChatEvent, GenerationFinished, TokenGenerated
from app.worker.protocol import Sampling, TemplateChecked, TemplateFinding

TRIAL_S = 3.0
_MAX_TOKENS = 32
_QUESTIONS = ("Reply with one word: yes", "Reply with one word: no")
# role names and markers of the usual templates, as text in an answer
_LEAKS = re.compile(
    r"<\|[a-z_]+\|?>|\|>|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>|<\uff5c"
    r"|(?:^|\n)\s*(?:#{2,3} )?(?:User|Human|Assistant|Instruction|Response|system|user|assistant)"
    r"\s*(?::|\n)"
)
_CHOICE = "Choose another template for this chat: a built-in one such as chatml, or plain text."


class Checkable(Answering, Protocol):
    """An engine whose template can be looked at."""

    def check_template(self) -> TemplateChecked:
        """Return what is wrong with the template that would be used."""
        ...


class Trial:
    """Two short turns with a model. Iterate it to the end, or stop early; then read ``findings``.

    Attributes:
        findings: What was found wrong so far.
    """

    def __init__(self, engine: Checkable, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Prepare; nothing is asked yet."""
        self.findings: tuple[TemplateFinding, ...] = ()
        self._engine = engine
        self._clock_s = clock_s
        self._ends: list[str] = []
        self._has_thought = False

    def run(self) -> Iterator[ChatEvent]:
        """Look and try, ``TRIAL_S`` at most for the trial; every event is a cancel point.

        Raises:
            EnvironmentProblem: The model is not loaded, or its template ended the engine.
        """
        checked = self._engine.check_template()
        self.findings = checked.findings
        if checked.template in {"", "text"}:
            return
        conversation = Conversation(self._engine)
        deadline_s = self._clock_s() + TRIAL_S
        for question in _QUESTIONS:
            if self._clock_s() < deadline_s:
                yield from self._turn(conversation, question, deadline_s)
        self._judge()

    def _turn(
        self, conversation: Conversation, question: str, deadline_s: float
    ) -> Iterator[ChatEvent]:
        answer = ""
        stream = conversation.ask(question, Sampling(temperature=0), _MAX_TOKENS)
        for event in stream:
            if isinstance(event, TokenGenerated):
                self._has_thought |= event.kind == "reasoning"
                answer += event.text if event.kind == "answer" else ""
            elif isinstance(event, GenerationFinished):
                self._ends.append(event.reason)
            yield event
            if self._clock_s() > deadline_s:
                getattr(stream, "close", lambda: None)()
                break
        if leak := _LEAKS.search(answer):
            word = leak.group().strip()
            message = f"Markers of the chat template show up in answers ({word!r})."
            self._add("markers_leak", message, word)

    def _judge(self) -> None:
        never_stops = len(self._ends) == len(_QUESTIONS) and set(self._ends) == {"length"}
        # a model that thinks has not come to its answer yet
        if never_stops and not self._has_thought:
            message = "The model did not end a one-word answer: its template may be the wrong one."
            self._add("no_end", message)

    def _add(self, code: str, message: str, stop: str = "") -> None:
        if any(f.error.code == code for f in self.findings):
            return
        error = ErrorInfo(code=code, message=message, hint=_CHOICE)
        self.findings = (*self.findings, TemplateFinding(error=error, stop=stop))
