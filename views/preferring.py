"""Makes preferences count: kept on disk, and applied while the window is open."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.domain.errors import ErrorInfo
from app.store.preferences import Preferences, save_preferences
from views.bridge import Jobs
from views.colors import Scheme
from views.feed import TelemetryFeed
from views.language import Language, Translations
from views.options import BUILT_IN
from views.units import use_units
from views.widgets import Kit

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from views.chat.page import ChatPage

BUSY = ("search", "serve")
"""Jobs that a change waits for when it builds the pages anew."""


class Preferring(QObject):
    """Applies every change of the options.

    Signals:
        rebuild_wanted: What widgets show has changed, and nothing runs that this would end.
        folders_changed: Models are to be looked for elsewhere.
        failed: ``ErrorInfo``; the change counts, but could not be kept.
    """

    rebuild_wanted = Signal()
    folders_changed = Signal()
    failed = Signal(object)

    def __init__(
        self, kit: Kit, jobs: Jobs, feed: TelemetryFeed, translations: Translations | None,
        window: "QWidget",
    ) -> None:  # fmt: skip
        """Listen from now on."""
        super().__init__(window)
        self._kit = kit
        self._jobs = jobs
        self._feed = feed
        self._translations = translations
        self.is_waiting = False
        self._chat: ChatPage | None = None
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._try)
        kit.options.changed.connect(self._on_changed)
        jobs.changed.connect(self._on_jobs_changed)

    def follow(self, chat: "ChatPage") -> None:
        """Let an answer be written to its end; a chat that only waits is ended for a change."""
        self._chat = chat
        chat.scene.changed.connect(self._on_jobs_changed)

    def stop(self) -> None:
        """Build nothing anew any more: the window closes."""
        self.is_waiting = False
        self._soon.stop()

    @Slot(object)
    def _on_changed(self, before: Preferences) -> None:
        options = self._kit.options
        now = options.value
        job = self._jobs.call("preferences", partial(save_preferences, now))
        job.failed.connect(self._on_failed)
        if options.differs(before, "theme", "contrast"):
            self._kit.theme.choose(Scheme(now.theme), strong=now.contrast == "high")
        if options.differs(before, "interval_s"):
            self._feed.set_interval(now.interval_s)
        if options.differs(before, "model_folders"):
            self.folders_changed.emit()
        use_units(binary=now.memory_unit == "binary", celsius=now.temperature_unit == "celsius")
        if options.differs(before, "language") and self._translations is not None:
            self._translations.choose(Language(now.language))
        if options.differs(before, *BUILT_IN):
            self.is_waiting = True
            self._soon.start(0)

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        self.failed.emit(error)

    @Slot()
    def _on_jobs_changed(self) -> None:
        if self.is_waiting:
            self._soon.start(0)

    @Slot()
    def _try(self) -> None:
        if not self.is_waiting or any(self._jobs.running(kind) for kind in BUSY):
            return
        if self._jobs.running("chat"):
            if self._chat is not None and not self._chat.scene.is_answering:
                self._chat.stop()  # its end comes back here
            return
        self._chat = None  # it goes with its page
        self.is_waiting = False
        self.rebuild_wanted.emit()
