"""The engine's side of the chat page: holds the conversation and carries out commands.

One job's thread does everything that may take time: files, database, engine. The page only sends
commands and shows the events that come back.
"""

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from app.chat.context_use import context_use
from app.chat.conversation import Conversation
from app.chat.export import save
from app.chat.thread import Thread
from app.domain.errors import EnvironmentProblem
from app.domain.events import ChatEvent
from views.bridge import Jobs
from views.chat import commands
from views.chat.picker import Choice
from views.chat.seat import Seat
from views.chat.turns import (
    AnswerBegun,
    AnswerStopped,
    ChatUnloaded,
    CommandFailed,
    ContextCounted,
    MessageReturned,
    TextsCounted,
    TurnsShown,
    TurnView,
)
from views.port import SessionPort

if TYPE_CHECKING:
    from views.chat.watch import Watch

_ANSWERING = (commands.Ask, commands.Edit, commands.Retry, commands.GoOn)
LOOK_S = 1.0
"""Seconds between two readings while a model is loaded, and for a while after."""
REST_LOOKS = 20
"""Readings after an idle model was unloaded; more would keep a laptop's card awake."""


class Desk:
    """Work for a job; the page's thread sends commands and may stop an answer."""

    def __init__(
        self,
        session: SessionPort,
        jobs: Jobs,
        choice: Choice,
        clock_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Prepare; nothing is read or loaded before ``work`` runs."""
        self._session = session
        self._clock_s = clock_s
        self._box: queue.SimpleQueue[commands.Command | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._seat = Seat(session, jobs, choice, self._stopping)
        self._asked = commands.Configure()
        self._conversation: Conversation | None = None
        self._looked_s = 0.0
        self._resting: Watch | None = None
        self._n_rest_looks = 0
        self._n_sent = self._n_done = 0

    def send(self, command: commands.Command) -> None:
        """Have ``command`` carried out after those sent before."""
        if isinstance(command, _ANSWERING):
            self._stopping.clear()
        self._put(command)

    @property
    def is_idle(self) -> bool:
        """Whether every command so far has been carried out, and its events told."""
        return self._n_done == self._n_sent

    def _put(self, command: commands.Command) -> None:
        self._n_sent += 1
        self._box.put(command)

    def stop_answer(self) -> None:
        """Stop the answer that is being written."""
        self._stopping.set()

    def unload(self) -> None:
        """Stop the answer, if one is being written, and give the model's memory back."""
        self._stopping.set()
        self._put(commands.Unload())

    def end(self) -> None:
        """Stop answering and unload the model; part of cancelling the job."""
        self._stopping.set()
        self._box.put(None)

    def work(self, cancel: threading.Event) -> Iterator[object]:
        """Carry out commands until the end; runs on the job's thread."""
        try:
            while not cancel.is_set():
                looks = self._seat.chat is not None or self._resting is not None
                try:
                    command = self._box.get(timeout=LOOK_S if looks else None)
                except queue.Empty:
                    yield from self._rest()
                    continue
                if command is None:
                    return
                self._resting = None
                try:
                    yield from self._carry_out(command)
                except EnvironmentProblem as problem:
                    yield CommandFailed(error=problem.info)
                yield from self._news()
                self._n_done += 1
        finally:
            self._seat.leave()

    def _carry_out(self, command: commands.Command) -> Iterator[object]:
        match command:
            case commands.Ask() | commands.Edit() | commands.Retry() | commands.GoOn():
                yield from self._answer(command)
            case commands.Switch(turn_id=turn_id):
                self._talk().switch(turn_id)
                yield from self._shown()
            case commands.Delete(turn_id=turn_id):
                self._talk().delete(turn_id)
                yield from self._shown()
            case commands.Open():
                yield from self._open(command)
            case commands.Export(path=path):
                save(self._talk().thread, Path(path))
            case commands.Choose(choice=choice):
                self._seat.choice = choice
                self._talk().thread.choose_model("", choice.model, choice.profile_id)
            case commands.Configure():
                yield from self._configure(command)
            case commands.Count(texts=texts):
                chat = self._seat.chat
                if chat is not None:
                    counts = {key: chat.tokenize(text) for key, text in texts.items()}
                    yield TextsCounted(counts=counts)
            case commands.Unload():
                if self._seat.chat is not None:
                    self._seat.leave()
                    yield ChatUnloaded(is_idle=False)

    # --- answers ---------------------------------------------------------------------------

    def _answer(self, command: commands.Command) -> Iterator[object]:
        talk = self._talk()
        last = talk.thread.turns[-1:]
        goes_on = isinstance(command, commands.GoOn) and last and last[0].role == "assistant"
        stream: Iterator[ChatEvent]
        match command:
            case commands.Ask(text=text):
                stream = talk.ask(text)
            case commands.Edit(turn_id=turn_id, text=text):
                stream = talk.edit(turn_id, text)
            case commands.Retry():
                stream = talk.retry()
            case _:
                stream = talk.go_on()
        has_begun = False
        with closing(stream):  # type: ignore[type-var]
            for event in stream:
                if not has_begun:
                    # the question is on the disk by now
                    yield self._turns()
                    yield AnswerBegun(continues=bool(goes_on))
                    has_begun = True
                yield from self._during(event)
                if self._stopping.is_set():
                    break
        if self._seat.watch is not None:
            self._seat.watch.end()
        if self._stopping.is_set():
            yield AnswerStopped()
        yield from self._shown()
        if talk.refused:
            edits = command.turn_id if isinstance(command, commands.Edit) else None
            yield MessageReturned(conversation_id=talk.thread.id, text=talk.refused, edits=edits)

    def _during(self, event: ChatEvent) -> Iterator[object]:
        yield from self._news()
        yield event
        watch, now_s = self._seat.watch, self._clock_s()
        if watch is not None:
            watch.note(event)
            if now_s - self._looked_s >= LOOK_S:
                self._looked_s = now_s
                yield watch.look()

    def _rest(self) -> Iterator[object]:
        """Nobody asks: look after the machine, and give the memory back after a while."""
        chat, watch = self._seat.chat, self._seat.watch
        if chat is not None and chat.unload_if_idle():
            self._seat.leave()
            self._resting, self._n_rest_looks = watch, 0
            yield ChatUnloaded(is_idle=True)
        elif watch is not None:
            yield watch.look()
        elif self._resting is not None:
            yield self._resting.rest()
            self._n_rest_looks += 1
            if self._n_rest_looks == REST_LOOKS:
                self._resting = None

    def _news(self) -> Iterator[object]:
        news, self._seat.news = self._seat.news, []
        yield from news
        chat = self._seat.chat
        if news and chat is not None and self._conversation is not None:
            model = self._seat.choice.model
            self._conversation.thread.choose_model(chat.spec.name, model, chat.profile_id)

    # --- conversations ---------------------------------------------------------------------

    def _talk(self) -> Conversation:
        """Return the conversation in view, a new one if there is none yet."""
        if self._conversation is None:
            choice, system = self._seat.choice, self._asked.system
            self._take(
                Thread(
                    self._session.store(),
                    system=system,
                    model_path=choice.model,
                    profile_id=choice.profile_id,
                )
            )
        assert self._conversation is not None
        return self._conversation

    def _take(self, thread: Thread) -> None:
        asked = self._asked
        self._conversation = Conversation(
            self._seat, thread=thread, overflow=asked.overflow, sampling=asked.sampling
        )

    def _open(self, wanted: commands.Open) -> Iterator[object]:
        turn_id = None
        if wanted.conversation_id is None:
            self._conversation = None
            self._talk()
        else:
            thread = Thread.open(self._session.store(), wanted.conversation_id)
            turn_id = thread.turn_of(wanted.message_id)
            self._take(thread)
            if turn_id is not None:
                thread.switch(turn_id)
        yield self._turns(is_opened=True, found=turn_id)
        yield from self._counted()

    def _configure(self, asked: commands.Configure) -> Iterator[object]:
        self._asked = asked
        self._seat.template, self._seat.stop = asked.template, asked.stop
        talk = self._talk()
        talk.sampling, talk.overflow = asked.sampling, asked.overflow
        if talk.thread.system != asked.system:
            talk.thread.set_system(asked.system)
            yield from self._counted()

    def _shown(self) -> Iterator[object]:
        yield self._turns()
        yield from self._counted()

    def _turns(self, *, is_opened: bool = False, found: int | None = None) -> TurnsShown:
        thread = self._talk().thread
        below = defaultdict(list)
        for turn in thread.every_turn():
            below[turn.parent].append(turn.id)
        turns = tuple(
            TurnView(
                id=t.id, role=t.role, content=t.content, reasoning=t.reasoning, timing=t.timing,
                siblings=tuple(below[t.parent]),
            )
            for t in thread.turns
        )  # fmt: skip
        return TurnsShown(
            conversation_id=thread.id, title=thread.title, system=thread.system, turns=turns,
            model_path=thread.model_path, profile_id=thread.profile_id, is_opened=is_opened,
            found=found,
        )  # fmt: skip

    def _counted(self) -> Iterator[object]:
        """Count what the context is filled with, where a model can tell."""
        chat, prompt = self._seat.chat, self._talk().prompt
        if chat is None or not prompt:
            return
        try:
            counted = chat.count_prompt(prompt)
        except EnvironmentProblem:
            return  # the gauge keeps what it shows; asking says what is wrong
        yield ContextCounted(use=context_use(prompt, counted, chat.settings.n_ctx))
