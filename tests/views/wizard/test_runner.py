"""One search at a time: what an earlier one still says must not touch the next."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.domain.sweep import SweepRequest, SweepStatus
from tests.fakes.session import FakeSession
from views.bridge import Jobs
from views.wizard.runner import SearchRunner


@pytest.fixture
def jobs(qtbot: QtBot) -> Iterator[Jobs]:
    """Return jobs that are all over when the test is."""
    jobs = Jobs()
    yield jobs
    jobs.cancel_all()
    qtbot.waitUntil(lambda: not jobs.running())
    jobs.deleteLater()


def test_end_of_the_old_search_leaves_the_new_one_alone(
    jobs: Jobs, session: FakeSession, qtbot: QtBot
) -> None:
    """After plan, drop, plan again, Stop must still stop what runs, and keep its trials."""
    owner = QObject()
    runner = SearchRunner(session, jobs, owner)
    session.gate.clear()
    with qtbot.waitSignal(runner.planned):
        runner.start("x", SweepRequest())
    with qtbot.waitSignal(runner.planned):  # nobody can accept a plan before it is there
        runner.start("x", SweepRequest())
    qtbot.waitUntil(lambda: len(jobs.running()) == 1)
    assert runner.is_running
    runner.go()
    done: list[object] = []
    runner.trial_finished.connect(done.append)
    qtbot.waitUntil(lambda: len(done) == session.hold_at)
    with qtbot.waitSignal(runner.finished) as finished:
        runner.stop()
    assert finished.args[0].status is SweepStatus.CANCELLED
    qtbot.waitUntil(lambda: not runner.is_running)


def test_dropped_search_says_nothing_more(jobs: Jobs, session: FakeSession, qtbot: QtBot) -> None:
    """A plan that arrives after Back must not come on screen, let alone start."""
    owner = QObject()
    runner = SearchRunner(session, jobs, owner)
    plans: list[object] = []
    runner.planned.connect(plans.append)
    runner.start("x", SweepRequest())
    with qtbot.waitSignal(runner.ended):
        runner.drop()
    assert plans == []
    assert not runner.is_running
