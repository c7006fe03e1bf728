"""Opens the session and looks at the machine, beside the window; remembers what was found."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.domain.errors import ErrorInfo
from app.domain.machine import Machine
from views.beside import Opened, look_at_machine
from views.bridge import Jobs
from views.feed import TelemetryFeed, TelemetryPort
from views.options import Options
from views.port import SessionPort


class Looking(QObject):
    """What the window knows of the session and the machine.

    Attributes:
        session: ``None`` until it is open.
        machine: ``None`` until it was looked at.
        has_failed: Whether the last look ended with an error.

    Signals:
        opened: ``SessionPort``, once.
        seen: ``Machine``.
        read: Live readings arrive from now on.
        failed: ``ErrorInfo``.
    """

    opened = Signal(object)
    seen = Signal(object)
    read = Signal()
    failed = Signal(object)

    def __init__(
        self,
        open_session: Callable[[], SessionPort],
        options: Options,
        jobs: Jobs,
        feed: TelemetryFeed,
        parent: QObject,
    ) -> None:
        """Look at nothing yet; ``open_session`` is called once, on a thread."""
        super().__init__(parent)
        self._open_session, self._options = open_session, options
        self._jobs, self._feed = jobs, feed
        self.session: SessionPort | None = None
        self.machine: Machine | None = None
        self.has_failed = False

    def look(self, *, refresh: bool) -> None:
        """Look at the machine; ``refresh`` where what is known may be old."""
        interval_s = self._options.value.interval_s
        look = look_at_machine(self.session, self._open_session, interval_s, refresh=refresh)
        job = self._jobs.start("start", look)
        job.event_arrived.connect(self._on_event)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_event(self, event: object) -> None:
        if isinstance(event, Opened):
            self.session = event.session
            self.opened.emit(event.session)
        elif isinstance(event, Machine):
            self.machine = event
            self.seen.emit(event)
        else:
            telemetry: TelemetryPort = event  # type: ignore[assignment]
            self._feed.attach(telemetry)
            # The session keeps one telemetry: an earlier pace may be another.
            self._feed.set_interval(self._options.value.interval_s)
            self.read.emit()

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        self.has_failed = True
        self.failed.emit(error)
