"""The orderly end of the window: what runs is stopped, what was measured is kept."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Slot

from views.bridge import Jobs

BUDGET_MS = 10_000


class Ending(QObject):
    """Waits for the running jobs, has the state saved beside the window, then closes it.

    Attributes:
        is_begun: Whether the window is about to close; nothing new may start.
    """

    def __init__(
        self, jobs: Jobs, work: Callable[[], Callable[[], object]], close: Callable[[], object],
        parent: QObject,
    ) -> None:  # fmt: skip
        """Prepare the end.

        Args:
            jobs: What may run.
            work: Called once nothing runs any more; returns what a last job is to do.
            close: Called when everything is over.
            parent: The window.
        """
        super().__init__(parent)
        self._jobs = jobs
        self._work = work
        self._close = close
        self.is_begun = self._is_saved = self._is_given_up = False
        self._deadline = QTimer(self)
        self._deadline.setSingleShot(True)
        self._deadline.setInterval(BUDGET_MS)
        self._deadline.timeout.connect(self._on_deadline)
        jobs.idle.connect(self._on_idle)

    @property
    def is_over(self) -> bool:
        """Whether the window may close now."""
        return self._is_given_up or (self._is_saved and not self._jobs.running())

    def begin(self) -> None:
        """Ask every job to stop, and close once they have."""
        self.is_begun = True
        self._jobs.cancel_all()
        self._deadline.start()
        if not self._jobs.running():
            self._on_idle()

    def stop(self) -> None:
        """Wait no longer: the window closes."""
        self._deadline.stop()

    @Slot()
    def _on_idle(self) -> None:
        if not self.is_begun:
            return
        if self._is_saved:
            self._close()
            return
        self._is_saved = True
        self._jobs.call("state", self._work())

    @Slot()
    def _on_deadline(self) -> None:
        # A job that does not end must not keep the window: its thread dies with the process.
        self._is_given_up = True
        self._close()
