"""Which engine RigTune runs on, and the way back to the one from before the last upgrade."""

from functools import partial

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QMessageBox
from typing_extensions import override

from app.domain.errors import ErrorInfo
from app.domain.events import TrialProgress
from views.bridge import Job, Jobs
from views.port import EngineStandingPort, SessionPort
from views.settings.engine_check import KIND, check_profiles, checked_text
from views.widgets import Banner, Card, Heading, Kit, text_label
from views.words import error_text, paragraph, phase_label

MAX_NAMED = 3


class EngineCard(Card):
    """Says what is in use; switches and measures again only when the user asks.

    Signals:
        switched: The other engine is in use from now on.
    """

    switched = Signal()

    def __init__(self, kit: Kit) -> None:
        """Build it; it is filled once there is a session."""
        super().__init__(kit)
        self._session: SessionPort | None = None
        self._jobs: Jobs | None = None
        self._standing: EngineStandingPort | None = None
        self._job: Job | None = None
        self._found: list[str] = []
        self.column.addWidget(Heading(self.tr("Engine"), 1.1))
        self.banner = Banner(kit)
        self.column.addWidget(self.banner)
        self.text = text_label(self.tr("The engine is being looked at…"))
        self.column.addWidget(self.text)
        self.outdated = text_label(muted=True)
        self.column.addWidget(self.outdated)
        row = QHBoxLayout()
        self.switch = kit.button("", "history")
        self.check = kit.button(self.tr("Measure Them Again"), "refresh")
        row.addWidget(self.switch)
        row.addWidget(self.check)
        row.addStretch(1)
        self.column.addLayout(row)
        self.switch.clicked.connect(self.ask)
        self.check.clicked.connect(self._on_check_clicked)
        self._show_state()

    def attach(self, session: SessionPort, jobs: Jobs) -> None:
        """Look after ``session`` from now on."""
        self._session, self._jobs = session, jobs
        if self.isVisible():
            self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Look which engine is in use; none is started and no GPU woken for it."""
        session = self._session
        if session is None or self._jobs is None:
            return
        job = self._jobs.call("engine", lambda: session.engines().standing(session.machine()))
        job.event_arrived.connect(self._on_standing)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_standing(self, standing: EngineStandingPort) -> None:
        self._standing = standing
        self._show_state()

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        self.banner.show_error(error)

    # --- what is seen ----------------------------------------------------------------------

    def _show_state(self) -> None:
        standing = self._standing
        is_earlier = standing is not None and standing.in_use == "previous"
        can_switch = standing is not None and standing.in_use and standing.has_previous
        names = (
            self.tr("Use This RigTune's Engine…"),
            self.tr("Go Back to the Earlier Engine…"),
        )
        name = names[0] if is_earlier else names[1]
        self.switch.setText(f" {name}")
        self.switch.setAccessibleName(name)
        self.switch.setVisible(bool(can_switch))
        self.switch.setEnabled(self._job is None)
        outdated = standing.outdated if standing is not None else ()
        can_check = bool(outdated) and standing is not None and standing.in_use == "current"
        self.check.setVisible(self._job is not None or can_check)
        name = self.tr("Stop") if self._job is not None else self.tr("Measure Them Again")
        self.check.setText(f" {name}")
        self.check.setAccessibleName(name)
        if standing is not None:
            self.text.setText(self._standing_text(standing))
        self.outdated.setText(self._outdated_text([p.name for p in outdated]))
        self.outdated.setVisible(bool(outdated))

    def _standing_text(self, standing: EngineStandingPort) -> str:
        used = {
            "current": self.tr("Searches and chats run on this RigTune's engine: {build}."),
            "previous": self.tr(
                "Searches and chats run on the engine from before the last upgrade: {build}."
            ),
        }
        own = self.tr("Searches and chats run on llama.cpp libraries of your own: {build}.")
        unknown = self.tr("not asked yet, because a GPU sleeps")
        text = used.get(standing.in_use or "", own).format(build=standing.build or unknown)
        if standing.error is not None:
            text = self.tr("The engine does not start: {why}").format(
                why=error_text(standing.error)
            )
        if standing.in_use == "current":
            kept = (
                self.tr("The engine from before the last upgrade is kept, to go back to.")
                if standing.has_previous
                else self.tr("No earlier engine is kept here; the next upgrade keeps this one.")
            )
            text = paragraph([text, kept])
        return text

    def _outdated_text(self, names: list[str]) -> str:
        if not names:
            return ""
        shown = ", ".join(names[:MAX_NAMED]) + ("…" if len(names) > MAX_NAMED else "")
        text = self.tr(
            "%n stored profile(s) were measured by another engine: {names}. Their settings are "
            "used as before; their speeds may not hold until they are measured again.",
            "",
            len(names),
        )
        return text.format(names=shown)

    # --- going back ------------------------------------------------------------------------

    @Slot()
    def ask(self) -> QMessageBox:
        """Ask before anything is switched; the dialog says what it means."""
        to_earlier = self._standing is None or self._standing.in_use == "current"
        box = QMessageBox(self)
        box.setIcon(QMessageBox.Icon.Question)
        box.setWindowTitle(self.tr("Change the engine"))
        box.setText(
            self.tr("Run searches and chats on the engine from before the last upgrade?")
            if to_earlier
            else self.tr("Run searches and chats on this RigTune's engine again?")
        )
        box.setInformativeText(
            self.tr(
                "Nothing is deleted, and you can change back here at any time. A model that is "
                "loaded for chat is unloaded. Profiles that the other engine measured stay as "
                "they are, but their speeds may not hold: measure them again under Results."
            )
        )
        yes = box.addButton(self.tr("Change the Engine"), QMessageBox.ButtonRole.AcceptRole)
        no = box.addButton(self.tr("Leave It"), QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(no)
        box.setEscapeButton(no)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        yes.clicked.connect(self.go_on)
        box.open()
        return box

    @Slot()
    def go_on(self) -> None:
        """Switch to the other engine."""
        session, standing = self._session, self._standing
        if session is None or self._jobs is None or standing is None or standing.in_use is None:
            return
        if self._jobs.running(KIND):
            self.banner.say(self.tr("A search is running: stop it first."), "warn")
            return
        other = standing.in_use.other
        job = self._jobs.call("engine", lambda: session.engines().use(other))
        job.event_arrived.connect(self._on_switched)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_switched(self, _none: object) -> None:
        self.banner.say(self.tr("The other engine is in use now."), "good")
        self.switched.emit()
        self.refresh()

    # --- measuring again -------------------------------------------------------------------

    @Slot()
    def _on_check_clicked(self) -> None:
        session, jobs, standing = self._session, self._jobs, self._standing
        if self._job is not None:
            self._job.cancel()
        elif session is not None and jobs is not None and standing is not None:
            self._found = []
            ids = tuple(profile.id for profile in standing.outdated)
            self._job = jobs.start(KIND, partial(check_profiles, session, jobs, ids))
            self._job.event_arrived.connect(self._on_event)
            self._job.failed.connect(self._on_failed)
            self._job.ended.connect(self._on_ended)
            self.banner.say(self.tr("Measuring again…"))
            self._show_state()

    @Slot(object)
    def _on_event(self, event: object) -> None:
        if isinstance(event, TrialProgress):
            text = self.tr("Measuring again: {phase}").format(phase=phase_label(event.phase))
            self.banner.say(text)
        elif hasattr(event, "verdict"):
            self._found.append(checked_text(event))  # type: ignore[arg-type]

    @Slot(object)
    def _on_ended(self, _job: object) -> None:
        self._job = None
        if self._found:
            self.banner.say("\n".join(self._found), "info")
        elif self.banner.text:
            self.banner.hide()
        self.refresh()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
