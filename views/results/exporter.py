"""Fetches exported commands for a ``ResultView`` beside the window."""

from functools import partial

from PySide6.QtCore import QObject, Slot

from views.bridge import Jobs
from views.port import SessionPort
from views.results.report import write_report
from views.results.result_view import ResultView


class Exporter(QObject):
    """Answers ``export_requested`` of one view."""

    def __init__(self, view: ResultView, session: SessionPort, jobs: Jobs) -> None:
        """Serve ``view``."""
        super().__init__(view)
        self._view = view
        self._session = session
        self._jobs = jobs
        view.export_requested.connect(self._on_export_requested)
        view.report_requested.connect(self._on_report_requested)

    @Slot(str, str)
    def _on_export_requested(self, profile_id: str, form: str) -> None:
        job = self._jobs.call("export", partial(self._session.export, profile_id, form))
        job.event_arrived.connect(self._view.show_export)
        job.failed.connect(self._view.show_problem)

    @Slot(str, str)
    def _on_report_requested(self, path: str, html: str) -> None:
        job = self._jobs.call("report", partial(write_report, path, html))
        job.event_arrived.connect(self._view.show_written)
        job.failed.connect(self._view.show_problem)
