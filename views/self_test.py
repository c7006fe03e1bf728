"""The self-test in the window: each step as it ends, a short trial on every device among them."""

import threading
from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, Slot

from app.domain.errors import ErrorInfo
from app.domain.finding import Check
from views.advice_page import AdvicePage
from views.bridge import Job, Jobs
from views.port import SessionPort

KIND = "doctor"


class SelfTest(QObject):
    """Runs the self-test for the advice page, one at a time."""

    def __init__(
        self, page: AdvicePage, jobs: Jobs, session: Callable[[], SessionPort | None]
    ) -> None:
        """Wait for the page to ask."""
        super().__init__(page)
        self._page, self._jobs, self._session = page, jobs, session
        page.test_requested.connect(self._toggle)

    @Slot()
    def _toggle(self) -> None:
        """Start the test, or stop the one that runs after its present step."""
        session, running = self._session(), self._jobs.running(KIND)
        for job in running:
            job.cancel()
        if running or session is None:
            return

        def work(cancel: threading.Event) -> Iterator[object]:
            for check in session.doctor():
                yield check
                if cancel.is_set():
                    return

        self._page.begin_test()
        job = self._jobs.start(KIND, work)
        job.event_arrived.connect(self._on_check)
        job.failed.connect(self._on_failed)
        job.ended.connect(self._on_ended)

    @Slot(object)
    def _on_check(self, check: Check) -> None:
        self._page.show_check(check)

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        self._page.show_test_error(error)

    @Slot(object)
    def _on_ended(self, _job: Job) -> None:
        self._page.end_test()
