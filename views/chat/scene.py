"""Shows what the engine's side reports: turns, numbers, state and problems."""

from PySide6.QtCore import QObject, Signal

from app.chat.in_use import Rest
from app.domain.errors import ErrorInfo
from app.domain.events import (
    GenerationFinished,
    GenerationStarted,
    PromptProgress,
    SaveFailed,
    TokenGenerated,
    TrialProgress,
    TurnsDropped,
)
from app.domain.units import format_bytes, format_seconds, significant
from views.chat.meter import Meter
from views.chat.transcript import Transcript
from views.chat.turns import (
    AnswerBegun,
    AnswerStopped,
    ChatReady,
    ChatUnloaded,
    CommandFailed,
    ContextCounted,
    TemplateTried,
    TurnsShown,
    TurnView,
    Vitals,
)
from views.widgets import Banner, Pill
from views.words import error_text, paragraph, said_text, settings_text


class Scene(QObject):
    """Turns events into what is seen; decides nothing.

    Signals:
        changed: An answer began or ended.
        engine_failed: An answer ended with an error of the engine.
        loaded_changed: ``DeviceMemory`` of the loaded model; empty = none is loaded.
        resume_requested: The user wants the last answer to go on.
        setup_requested: The user wants to choose another template.
    """

    changed = Signal()
    loaded_changed = Signal(object)
    engine_failed = Signal()
    resume_requested = Signal()
    setup_requested = Signal()

    def __init__(
        self, transcript: Transcript, meter: Meter, banner: Banner, state: Pill
    ) -> None:  # fmt: skip
        """Show on these."""
        super().__init__()
        self._transcript = transcript
        self._meter = meter
        self._banner = banner
        self._state = state
        self._settings = self._unloaded = ""
        self._is_template_bad = False
        self._notes: list[str] = []
        self.is_answering = False
        banner.action_requested.connect(self._on_action_requested)

    def ask(self, text: str) -> None:
        """The user sent ``text``: show it at once, before the engine's side has it."""
        views = [turn.view for turn in self._transcript.turns]
        self._transcript.show_turns([*views, TurnView(role="user", content=text)])
        self.begin()

    def begin(self) -> None:
        """An answer was asked for."""
        self._banner.hide()
        self._is_template_bad = False
        self._meter.begin()
        self._set_answering(is_answering=True)

    def leave(self) -> None:
        """Another conversation comes into view."""
        self._banner.hide()
        self._meter.set_context(0)
        self._meter.show_causes(())
        self._meter.clear()
        self._transcript.show_turns([])
        self._set_answering(is_answering=False)

    def forget_model(self) -> None:
        """Another model was chosen; it is loaded with the next message."""
        self._settings = ""
        self._meter.set_context(0)
        self._state.show_state(self.tr("loaded with the next message"), "muted")

    def break_off(self) -> None:
        """The engine's side has ended."""
        if self.is_answering:
            self._end(self.tr("broken off"))
        self._state.show_state("", "muted")
        self.loaded_changed.emit(())

    def show_event(self, event: object) -> None:
        """Show ``event``."""
        match event:
            case TokenGenerated(text=text, kind=kind):
                self._token(event, text, kind)
            case TurnsShown():
                self._turns(event)
            case AnswerBegun(continues=continues):
                self._set_answering(is_answering=True)
                self._transcript.begin(continues=continues)
            case GenerationFinished():
                self._finish(event)
            case AnswerStopped():
                self._end(self.tr("stopped"))
            case Vitals():
                self._vitals(event)
            case _:
                self._show_other(event)

    def _show_other(self, event: object) -> None:
        match event:
            case GenerationStarted():
                self._meter.show_start(event)
            case PromptProgress():
                self._meter.show_prompt(event)
            case TrialProgress():
                self._loading(event)
            case ContextCounted(use=use):
                self._meter.show_use(use)
            case ChatReady():
                self._ready(event)
            case TemplateTried():
                self._template(event)
            case _:
                self._show_rare(event)

    def _show_rare(self, event: object) -> None:
        match event:
            case ChatUnloaded(is_idle=is_idle):
                text = self.tr("The model was unloaded; the next message loads it again.")
                idle = self.tr("Nobody asked for a while: {text}").format(text=text)
                self._settings = ""
                self._unloaded = idle if is_idle else text
                self.loaded_changed.emit(())
                self._meter.say(self._unloaded)
                self._state.show_state(self.tr("not loaded"), "muted", "asleep")
            case Rest():
                self._rest(event)
            case TurnsDropped(n_turns=n_turns, summary=summary):
                how = (
                    self.tr("The context was full: the oldest {n} turns are summarised.")
                    if summary
                    else self.tr("The context was full: the oldest {n} turns are left out.")
                )
                self._banner.say(how.format(n=n_turns), "info")
            case SaveFailed(error=error):
                self._banner.say(
                    self.tr("Not saved: {what} It is tried again.").format(what=error_text(error)),
                    "warn",
                )
            case CommandFailed(error=error):
                if self.is_answering:
                    self._end("")
                self._banner.show_error(error)
            case _:
                pass

    def _token(self, event: TokenGenerated, text: str, kind: str) -> None:
        self._meter.show_token(event)
        if text:
            self._transcript.append(text, is_thought=kind == "reasoning")

    def _turns(self, shown: TurnsShown) -> None:
        self._transcript.show_turns(shown.turns)
        if shown.is_opened:
            self._set_answering(is_answering=False)
        if shown.found is not None:
            self._transcript.reveal(shown.found)

    def _finish(self, event: GenerationFinished) -> None:
        if event.error is None and event.reason != "cancelled":
            self._meter.show_end(event)
        self._end("" if event.error is None else self.tr("broken off"))
        if event.error is not None:
            self._problem(event.error)
        elif event.reason == "context_full":
            self._banner.say(
                self.tr(
                    "The context is full. Choose under “How the model is asked” what should "
                    "happen then, begin a new chat, or tune for a longer context."
                ),
                "warn",
            )

    def _problem(self, error: ErrorInfo) -> None:
        self._is_template_bad = False
        is_full = error.code in {"context_full", "conversation_too_long"}
        if not is_full:
            self.engine_failed.emit()
        self._banner.show_error(error, "" if is_full else self.tr("Go On"))

    def _loading(self, event: TrialProgress) -> None:
        texts = {
            "wait": self.tr("waiting for the engine: a search or the server uses it…"),
            "template": self.tr("trying the chat template…"),
        }
        text = texts.get(event.phase, self.tr("loading the model…"))
        percent = "" if event.frac is None else f" {event.frac * 100:.0f}\u00a0%"
        self._state.show_state(text + percent, "warn" if event.phase == "wait" else "info")

    def _ready(self, ready: ChatReady) -> None:
        self._settings = settings_text(ready.settings)
        self.loaded_changed.emit(ready.devices)
        self._meter.set_context(ready.settings.n_ctx)
        self._state.show_state(self._settings, "muted", "tune")
        notes = [said_text(note) for note in ready.notes]
        if not ready.has_template and not notes:
            notes.append(
                self.tr("This model has no chat template: it continues your text instead.")
            )
        self._notes = notes
        if notes:
            self._banner.say(paragraph(notes), "warn")

    def _template(self, tried: TemplateTried) -> None:
        said = [error_text(f.error) for f in tried.findings]
        said += [
            self.tr("Ending answers at “{stop}” may help.").format(stop=f.stop)
            for f in tried.findings if f.stop
        ]  # fmt: skip
        self._is_template_bad = True
        # in place of what was said of the load, which stays true
        self._banner.say(paragraph(said + self._notes), "warn", self.tr("Choose…"))

    def _vitals(self, vitals: Vitals) -> None:
        self._meter.show_vitals(vitals, self._idle(vitals.idle_left_s))
        if vitals.neighbour is not None:
            name = vitals.neighbour or self.tr("Another program")
            text = self.tr("{name} took graphics memory; {free} are left. Answers may get slow.")
            self._banner.say(text.format(name=name, free=format_bytes(vitals.free_bytes)), "warn")

    def _rest(self, rest: Rest) -> None:
        """Say that the devices draw less, or sleep, since the model was unloaded."""
        if self.is_answering:
            return
        text = ""
        if rest.is_asleep:
            text = self.tr("The GPU sleeps.")
        elif rest.now_w is not None and rest.before_w is not None:
            text = self.tr("Draw now {now} W, {before} W with the model loaded.").format(
                now=significant(rest.now_w), before=significant(rest.before_w)
            )
        self._meter.say(" ".join(t for t in (self._unloaded, text) if t))

    def _idle(self, left_s: float | None) -> str:
        """Return when an idle model is unloaded; in minutes, which change once a minute."""
        if left_s is None or self.is_answering:
            return ""
        minutes = format_seconds(max(60.0, round(left_s / 60) * 60.0))
        return self.tr("unloaded after {time} idle").format(time=minutes)

    def _end(self, note: str) -> None:
        self._transcript.end(note)
        self._state.show_state(self._settings, "muted", "tune")
        self._meter.show_causes(())
        self._meter.end()
        self._set_answering(is_answering=False)

    def _set_answering(self, *, is_answering: bool) -> None:
        if is_answering != self.is_answering:
            self.is_answering = is_answering
            self.changed.emit()

    def _on_action_requested(self) -> None:
        self._banner.hide()
        if self._is_template_bad:
            self._is_template_bad = False
            self.setup_requested.emit()
        else:
            self.resume_requested.emit()
