"""The chat page: a conversation on a model's tuned settings."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLineEdit, QStackedWidget
from typing_extensions import override

from app.domain.errors import ErrorInfo
from app.domain.events import GenerationFinished, TokenGenerated
from views.bridge import Job, Jobs
from views.chat.composer import Composer
from views.chat.loop import AnswerStopped, ChatLoading, ChatLoop, ChatReady, ChatWaiting
from views.chat.meter import Meter
from views.chat.picker import Choice, ModelPicker
from views.chat.transcript import Transcript
from views.page import Page
from views.port import SessionPort
from views.power.line import PowerLine
from views.widgets import Banner, EmptyState, Kit, Pill
from views.words import settings_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.store.records import Profile
    from app.worker.protocol import ChatMessage


class ChatPage(Page):
    """Talks to one model at a time.

    Signals:
        tune_requested: The user wants better settings first.
    """

    tune_requested = Signal()

    def __init__(self, kit: Kit, session: SessionPort, jobs: Jobs) -> None:
        """Build the page; nothing is loaded before the first message."""
        super().__init__(kit, "")
        self.title.setText(self.tr("Chat"))
        self._session = session
        self._jobs = jobs
        self._loop: ChatLoop | None = None
        self._job: Job | None = None
        self._history: tuple[ChatMessage, ...] = ()
        self._is_answering = False
        self._was_ready = True
        self.picker = ModelPicker(kit)
        self.new = kit.button(self.tr("New Chat"), "new", "quiet")
        self.top.addWidget(self.picker)
        self.top.addWidget(self.new)
        self.banner = Banner(kit)
        self.body.addWidget(self.banner)
        self._state = Pill(kit)
        self.system = QLineEdit()
        self.system.setPlaceholderText(self.tr("System prompt (optional): how the model should be"))
        self.system.setAccessibleName(self.tr("System prompt"))
        self.body.addWidget(self.system)
        self._empty = EmptyState(
            kit, "chat", self.tr("Ask something"),
            self.tr("The model is loaded with the first message and runs on this machine only."),
        )  # fmt: skip
        self.transcript = Transcript(kit)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self.transcript)
        self.body.addWidget(self._stack, 1)
        self.body.addWidget(self._state)
        self.meter = Meter(kit)
        self.body.addWidget(self.meter)
        self.power = PowerLine()
        self.power.attach(session.power)
        self.body.addWidget(self.power)
        self.composer = Composer(kit)
        self.regenerate = self.composer.regenerate
        self.body.addWidget(self.composer)
        self._connect()
        self._show_state()

    def _connect(self) -> None:
        self.new.clicked.connect(self.new_chat)
        self.picker.chosen.connect(self._on_chosen)
        self.composer.sent.connect(self.send)
        self.composer.stop_requested.connect(self._on_stop_requested)
        self.regenerate.clicked.connect(self._on_regenerate_clicked)
        self.banner.action_requested.connect(self._on_restart_requested)

    def offer(self, model: str, profile_id: str | None) -> None:
        """Choose a model and profile; a conversation on another one ends."""
        self.picker.offer(Choice(model=model, profile_id=profile_id))

    @Slot(str)
    def send(self, text: str) -> None:
        """Send a message, loading the model first where it is not."""
        self._stack.setCurrentWidget(self.transcript)
        self.banner.hide()
        self.transcript.add("user", text)
        self._ask(text)

    def unload(self) -> None:
        """Give the model's memory back; the conversation stays and can go on."""
        if self._job is not None:
            self._job.cancel()
            self.meter.say(self.tr("Unloaded for the search; loaded again with the next message."))

    def stop(self) -> None:
        """End the loop for good."""
        if self._job is not None:
            self._job.cancel()

    @Slot()
    def new_chat(self) -> None:
        """Begin anew; the model stays loaded only if it stays the same."""
        self.stop()
        self._loop = self._job = None
        self._history = ()
        self.transcript.clear()
        self._stack.setCurrentWidget(self._empty)
        self.banner.hide()
        self.meter.set_context(0)
        self.meter.say("")
        self._is_answering = False
        self._show_state()
        self.composer.field.setFocus()

    def _ask(self, text: str) -> None:
        self.transcript.add("assistant")
        self._is_answering = True
        if self._loop is None:
            self._load()
        if self._loop is not None:
            self._loop.ask(text)
        self.meter.begin()
        self._show_state()

    def _load(self) -> None:
        choice = self.picker.choice
        self._loop = ChatLoop(
            self._session, self._jobs, choice, system=self.system.text().strip(),
            history=self._history,
        )  # fmt: skip
        self._job = self._jobs.start("chat", self._loop.work, self._loop.end)
        self._job.event_arrived.connect(self._on_event)
        self._job.failed.connect(self._on_failed)
        self._job.ended.connect(self._on_ended)

    @Slot(object)
    def _on_event(self, event: object) -> None:
        if self.sender() is not self._job:
            return
        match event:
            case ChatWaiting():
                self._state.show_state(self.tr("waiting for the running search…"), "warn")
            case ChatLoading(frac=frac):
                percent = "" if frac is None else f" {frac * 100:.0f}\u00a0%"
                self._state.show_state(self.tr("loading the model…") + percent, "info")
            case ChatReady():
                self._on_ready(event)
            case TokenGenerated():
                self.transcript.messages[-1].append(event.text)
                self.meter.show_token(event)
            case GenerationFinished():
                self._finish(event)
            case AnswerStopped():
                self._end_answer(self.tr("stopped"))

    def _on_ready(self, ready: ChatReady) -> None:
        self.meter.set_context(ready.settings.n_ctx)
        self._state.show_state(settings_text(ready.settings), "muted", "tune")
        notes = list(ready.notes)
        if not ready.has_template and not notes:
            notes.append(
                self.tr("This model has no chat template: it continues your text instead.")
            )
        if notes:
            self.banner.say(" ".join(notes), "warn")

    def _finish(self, event: GenerationFinished) -> None:
        timing = self.meter.show_end(event)
        self._end_answer(timing)
        if event.error is not None:
            self.banner.show_error(event.error, self.tr("Restart"))
        elif event.reason == "context_full":
            self.banner.say(
                self.tr("The context is full. Begin a new chat, or tune for a longer context."),
                "warn",
            )

    def _end_answer(self, timing: str) -> None:
        self._is_answering = False
        self.transcript.messages[-1].finish(timing)
        self._show_state()

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        if self.sender() is not self._job:
            return
        self.banner.show_error(error, self.tr("Restart"))

    @Slot(object)
    def _on_ended(self, job: Job) -> None:
        if job is not self._job:
            return
        if self._loop is not None:
            self._history = self._loop.history
            self._was_ready = self._loop.is_ready
        self._loop = self._job = None
        if self._is_answering:
            self._end_answer(self.tr("broken off"))
        self._state.show_state("", "muted")
        self._show_state()

    @Slot()
    def _on_stop_requested(self) -> None:
        if self._loop is not None:
            self._loop.stop_answer()
            self.meter.say(self.tr("Stopping…"))

    @Slot()
    def _on_regenerate_clicked(self) -> None:
        last = self.transcript.messages[-1] if self.transcript.messages else None
        if last is not None and last.role == "assistant" and not self._is_answering:
            self.transcript.drop_last()
            # A question the engine never saw must be sent whole.
            self._ask("" if self._was_ready else self.transcript.messages[-1].text)
            self._was_ready = True

    @Slot()
    def _on_restart_requested(self) -> None:
        self.banner.hide()
        self._on_regenerate_clicked()

    @Slot(object)
    def _on_chosen(self, _choice: Choice) -> None:
        self.new_chat()

    def _show_state(self) -> None:
        self.composer.set_busy(self._is_answering)
        self.regenerate.setVisible(bool(self.transcript.messages) and not self._is_answering)
        self.system.setVisible(not self.transcript.messages)

    @Slot(object)
    def _on_profiles(self, profiles: "Sequence[Profile]") -> None:
        self.picker.show_profiles(profiles)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        job = self._jobs.call("profiles", self._session.profiles)
        job.event_arrived.connect(self._on_profiles)
        self.composer.field.setFocus()
