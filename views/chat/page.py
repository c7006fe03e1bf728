"""The chat page: conversations on a model's tuned settings."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from views.bridge import Jobs
from views.chat import commands
from views.chat.attaching import Attaching
from views.chat.composer import Composer
from views.chat.dialogs import ask_to_delete, ask_where_to_export
from views.chat.drafts import Drafts
from views.chat.editing import Editing
from views.chat.history import Entry, History
from views.chat.meter import Meter
from views.chat.picker import Choice, ModelPicker
from views.chat.scene import Scene
from views.chat.server import ServerPanel
from views.chat.setup import Setup
from views.chat.staff import Staff
from views.chat.transcript import Transcript
from views.chat.turns import (
    ChatReady,
    CommandFailed,
    MessageReturned,
    TextsCounted,
    TurnsShown,
    TurnView,
)
from views.page import Page, scrolling
from views.port import SessionPort
from views.power.line import PowerLine
from views.widgets import Banner, EmptyState, Kit, Pill
from views.widgets.sides import Sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.store.records import Profile


class ChatPage(Page):
    """Talks to one model at a time, in as many conversations as the user keeps.

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
        self.staff = Staff(session, jobs)
        self.staff.setParent(self)
        self._asked = commands.Configure()
        self._conversation: int | None = None
        self._title_in_list = ""
        self._is_opening = False
        self._build_top(kit)
        self._build_body(kit, session, jobs)
        self.drafts = Drafts(self.composer, session, jobs)
        self.editing = Editing(self.composer, self.drafts)
        self.attaching = Attaching(self.composer, self.staff, jobs)
        self.scene = Scene(self.transcript, self.meter, self.banner, self.state)
        self.scene.setParent(self)
        self._connect()
        self._show_state()

    def _build_top(self, kit: Kit) -> None:
        self.picker = ModelPicker(kit)
        self.top.addWidget(self.picker)
        self.with_history = kit.icon_button(self.tr("Conversations"), "history")
        self.with_setup = kit.icon_button(self.tr("How the model is asked"), "tune")
        self.with_server = kit.icon_button(self.tr("Local server"), "server")
        for button in (self.with_history, self.with_setup, self.with_server):
            button.setCheckable(True)
            self.top.addWidget(button)
        self.new = kit.button(self.tr("New Chat"), "new", "quiet")
        self.top.addWidget(self.new)

    def _build_body(self, kit: Kit, session: SessionPort, jobs: Jobs) -> None:
        sides = Sides(kit)
        self.body.addWidget(sides, 1)
        self.history = History(kit, session, jobs)
        sides.add(self.history, 0)
        right = QWidget()
        right.setMinimumWidth(55 * kit.unit)
        column = QVBoxLayout(right)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * kit.unit)
        sides.add(right)
        self.banner = Banner(kit)
        self.setup = Setup(kit)
        self.server = ServerPanel(kit, session, jobs)
        self.server.serve_from(lambda: self.picker.choice)
        column.addWidget(self.banner)
        self._empty = EmptyState(
            kit, "chat", self.tr("Ask something"),
            self.tr("The model is loaded with the first message and runs on this machine only."),
        )  # fmt: skip
        self.transcript = Transcript(kit)
        self._stack = QStackedWidget()
        self._setup_area, self._server_area = scrolling(self.setup), scrolling(self.server)
        for widget in (self._empty, self.transcript, self._setup_area, self._server_area):
            self._stack.addWidget(widget)
        column.addWidget(self._stack, 1)
        self.state = Pill(kit)
        column.addWidget(self.state)
        self.meter = Meter(kit)
        column.addWidget(self.meter)
        self.power = PowerLine()
        self.power.attach(session.power)
        column.addWidget(self.power)
        self.composer = Composer(kit)
        column.addWidget(self.composer)
        self.history.hide()

    def _connect(self) -> None:
        self.new.clicked.connect(self.new_chat)
        self.picker.chosen.connect(self._on_chosen)
        self.with_history.toggled.connect(self.history.setVisible)
        self.with_setup.toggled.connect(self._on_panel_toggled)
        self.with_server.toggled.connect(self._on_panel_toggled)
        composer = self.composer
        composer.sent.connect(self.send)
        composer.stop_requested.connect(self._on_stop_requested)
        self.attaching.failed.connect(self.banner.show_error)
        self.transcript.acted.connect(self._on_acted)
        self.transcript.switched.connect(lambda turn: self._tell(commands.Switch(turn_id=turn)))
        self.staff.reported.connect(self._on_event)
        self.staff.failed.connect(self.banner.show_error)
        self.staff.ended.connect(self.scene.break_off)
        self.scene.changed.connect(self._show_state)
        self.scene.resume_requested.connect(self._on_resume_requested)
        self.scene.setup_requested.connect(lambda: self.with_setup.setChecked(True))
        self.setup.changed.connect(self._configure)
        self.history.opened.connect(self._on_opened)
        self.history.removed.connect(self._on_removed)
        self.history.export_requested.connect(self._on_export_requested)
        self.history.failed.connect(self.banner.show_error)
        self.server.starting.connect(self.unload)
        self.server.failed.connect(self.banner.show_error)

    # --- for other pages -------------------------------------------------------------------

    def offer(self, model: str, profile_id: str | None) -> None:
        """Choose a model and profile; a conversation that was begun is left for a new one."""
        choice = Choice(model=model, profile_id=profile_id)
        if choice != self.picker.choice and self.transcript.turns:
            self.new_chat()
        self.picker.offer(choice)

    @Slot(str)
    def send(self, text: str) -> None:
        """Send a message, loading the model first where it is not."""
        edited = self.editing.end()
        self._configure()
        for panel in (self.with_setup, self.with_server):
            panel.setChecked(False)
        if edited is None:
            self._stack.setCurrentWidget(self.transcript)  # first: it places its rows once then
            self.scene.ask(text)
            self._tell(commands.Ask(text=text))
        else:
            self.scene.begin()
            self._tell(commands.Edit(turn_id=edited, text=text))

    @Slot()
    def unload(self) -> None:
        """Give the memory of chat and server back; the conversation stays and can go on."""
        self.server.end()
        self.staff.unload()

    def stop(self) -> None:
        """End for good; what is written is kept."""
        self.drafts.keep()
        self.server.end()
        self.staff.end()

    @Slot()
    def new_chat(self) -> None:
        """Begin anew; the model stays loaded."""
        self._open(None)

    # --- the engine's side -----------------------------------------------------------------

    def _tell(self, command: commands.Command) -> None:
        """Send a command, starting who carries it out where nobody does."""
        if not self.staff.is_there:
            self.staff.begin(self.picker.choice, self._asked, self._conversation)
        self.staff.tell(command)

    @Slot(object)
    def _on_event(self, event: object) -> None:
        # what the conversation left behind still says is of no interest
        is_opened = isinstance(event, TurnsShown) and event.is_opened
        self._is_opening &= not (is_opened or isinstance(event, CommandFailed))
        if self._is_opening:
            if isinstance(event, MessageReturned):
                self.drafts.keep_for(event.conversation_id, event.text)
            return
        self.scene.show_event(event)
        match event:
            case TurnsShown():
                self._on_turns(event)
            case MessageReturned():
                self.editing.take_back(event)
            case TextsCounted(counts=counts):
                self.composer.show_counts(counts)
            case ChatReady():
                self.attaching.count_anew()

    def _on_turns(self, shown: TurnsShown) -> None:
        is_new = shown.conversation_id != self._conversation
        self._conversation = shown.conversation_id
        self._show_middle()
        if shown.is_opened:
            self.setup.show_system(shown.system)
            self._asked = self.setup.configuration()
            if shown.model_path:
                self.picker.show_choice(Choice(model=shown.model_path, profile_id=shown.profile_id))
                self._tell(commands.Choose(choice=self.picker.choice))
            self.drafts.read(shown.conversation_id)
        elif is_new or shown.title != self._title_in_list:
            self.drafts.move(shown.conversation_id)
            self.history.refresh()
        self._title_in_list = shown.title

    # --- what the user does ----------------------------------------------------------------

    @Slot()
    def _configure(self) -> None:
        asked = self.setup.configuration()
        if asked != self._asked:
            self._asked = asked
            self.staff.tell(asked)

    @Slot()
    def _on_stop_requested(self) -> None:
        if self.staff.is_there:
            self.staff.stop_answer()
            self.meter.say(self.tr("Stopping…"))

    @Slot()
    def _on_resume_requested(self) -> None:
        self._configure()
        self.scene.begin()
        self._tell(commands.GoOn())

    @Slot(str, object)
    def _on_acted(self, action: str, turn: TurnView) -> None:
        if self.scene.is_answering or turn.id is None:
            return
        if action == "edit":
            self.editing.begin(turn.id, turn.content)
        elif action == "delete":
            self._ask_to_delete(turn.id)
        else:
            self._configure()
            self.scene.begin()
            self._tell(commands.Retry() if action == "retry" else commands.GoOn())

    def _ask_to_delete(self, turn_id: int) -> None:
        question = self.tr("Delete this message and everything that follows it?")
        ask_to_delete(self, question, lambda: self._tell(commands.Delete(turn_id=turn_id)))

    @Slot(object)
    def _on_chosen(self, choice: Choice) -> None:
        self.staff.tell(commands.Choose(choice=choice))
        self.scene.forget_model()

    @Slot(object)
    def _on_opened(self, entry: Entry) -> None:
        self._open(entry.conversation_id, entry.message_id)

    def _open(self, conversation_id: int | None, message_id: int | None = None) -> None:
        self.editing.end()
        self.drafts.keep()
        self.staff.stop_answer()
        self.scene.leave()
        self._conversation = None
        self._is_opening = True
        self._configure()
        self._tell(commands.Open(conversation_id=conversation_id, message_id=message_id))
        if conversation_id is None:
            self.composer.field.setFocus()

    @Slot(int)
    def _on_removed(self, conversation_id: int) -> None:
        if conversation_id == self._conversation:
            self.drafts.drop()
            self._open(None)

    @Slot(object)
    def _on_export_requested(self, entry: Entry) -> None:
        if entry.conversation_id != self._conversation:
            self._open(entry.conversation_id)
        ask_where_to_export(self, lambda path: self._tell(commands.Export(path=path)))

    # --- what is shown ---------------------------------------------------------------------

    @Slot(bool)
    def _on_panel_toggled(self, is_shown: bool) -> None:  # noqa: FBT001
        if is_shown:
            is_setup = self.sender() is self.with_setup
            (self.with_server if is_setup else self.with_setup).setChecked(False)
        self._show_middle()

    def _show_middle(self) -> None:
        """Show the panel that is chosen, or the conversation."""
        widget: QWidget = self.transcript if self.transcript.turns else self._empty
        if self.with_setup.isChecked():
            widget = self._setup_area
        elif self.with_server.isChecked():
            widget = self._server_area
        self._stack.setCurrentWidget(widget)

    @Slot()
    def _show_state(self) -> None:
        is_answering = self.scene.is_answering
        self.composer.set_busy(is_answering)
        self.transcript.set_busy(is_answering)

    @Slot(object)
    def _on_profiles(self, profiles: "Sequence[Profile]") -> None:
        self.picker.show_profiles(profiles)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        job = self._jobs.call("profiles", self._session.profiles)
        job.event_arrived.connect(self._on_profiles)
        self.history.refresh()
        if not self.drafts.has_read:
            self.drafts.read(None)
        self.composer.field.setFocus()
