"""Jobs: work on threads, events on the GUI thread."""

import threading
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import GenerationStarted, TokenGenerated
from views.bridge import Job, Jobs, Latest


def test_events_arrive_in_order_on_the_gui_thread(qtbot: QtBot) -> None:
    """Every event must arrive, in order, on the thread of the window."""
    jobs = Jobs()
    seen: list[object] = []
    threads: set[int] = set()

    def work(_cancel: threading.Event) -> Iterator[object]:
        threads.add(threading.get_ident())
        yield from range(100)

    def note(event: object) -> None:
        seen.append(event)
        assert threading.get_ident() not in threads

    with qtbot.waitSignal(jobs.idle):
        jobs.start("count", work).event_arrived.connect(note)
    assert seen == list(range(100))
    assert jobs.running() == ()


def test_tokens_come_in_batches_with_all_text(qtbot: QtBot) -> None:
    """A fast stream of tokens must not become a signal per token, and must lose nothing."""
    jobs = Jobs()
    seen: list[TokenGenerated] = []

    def work(_cancel: threading.Event) -> Iterator[object]:
        for index in range(2000):
            yield TokenGenerated(text=f"{index} ", n_tok=index + 1)

    with qtbot.waitSignal(jobs.idle):
        jobs.start("chat", work).event_arrived.connect(seen.append)
    assert "".join(e.text for e in seen) == "".join(f"{i} " for i in range(2000))
    assert len(seen) < 100


@pytest.mark.usefixtures("qapp")
def test_text_waits_longer_than_all_else() -> None:
    """Text may be drawn 12 times a second at most; what is no text yet delays no first token."""
    waits = []
    for event in (
        GenerationStarted(n_prompt=20, n_prompt_reused=0, n_ctx=4096, template="model"),
        TokenGenerated(text="", n_tok=0),
        TokenGenerated(text="first", n_tok=1),
    ):
        job = Job("chat", lambda _cancel: ())
        job._outbox.put(event)
        job._deliver()
        waits.append(job._gap.interval())
        job._gap.stop()
    assert waits[0] == waits[1] <= 35
    assert waits[2] >= 1000 / 12


def test_problem_arrives_as_failed_and_then_ended(qtbot: QtBot) -> None:
    """A problem the user can act on must arrive with its parts, before the end."""
    jobs = Jobs()
    order: list[object] = []

    def work() -> object:
        raise EnvironmentProblem("no_model", "There is no model.", "Choose one.")

    with qtbot.waitSignal(jobs.idle):
        job = jobs.call("inspect", work)
        job.failed.connect(order.append)
        job.ended.connect(order.append)
    assert order == [
        ErrorInfo(code="no_model", message="There is no model.", hint="Choose one."),
        job,
    ]


def test_bug_in_the_work_becomes_a_sentence(qtbot: QtBot) -> None:
    """An exception nobody expects must end the job, not the program."""
    jobs = Jobs()
    errors: list[ErrorInfo] = []

    def work() -> object:
        raise ZeroDivisionError("oh")

    with qtbot.waitSignal(jobs.idle):
        jobs.call("inspect", work).failed.connect(errors.append)
    assert errors[0].code == "bug"
    assert "ZeroDivisionError" in errors[0].message


def test_cancel_reaches_the_work(qtbot: QtBot) -> None:
    """A cancelled job must be able to end by itself and still report."""
    jobs = Jobs()
    seen: list[object] = []

    def work(cancel: threading.Event) -> Iterator[object]:
        yield "running"
        cancel.wait()
        yield "kept"

    job = jobs.start("search", work)
    job.event_arrived.connect(seen.append)
    qtbot.waitUntil(lambda: seen == ["running"])
    with qtbot.waitSignal(jobs.idle):
        jobs.cancel_all()
    assert seen == ["running", "kept"]


def test_latest_drops_what_was_overtaken(qtbot: QtBot) -> None:
    """While a slider moves only the newest estimate may be shown."""
    jobs = Jobs()
    latest = Latest(jobs, "estimate", jobs)
    seen: list[object] = []
    latest.result_arrived.connect(seen.append)
    gate = threading.Event()

    def slow() -> object:
        gate.wait()
        return "old"

    with qtbot.waitSignal(latest.result_arrived):
        latest.submit(slow)
        latest.submit(lambda: "overtaken")
        latest.submit(lambda: "new")
        gate.set()
    qtbot.waitUntil(lambda: not jobs.running())
    assert seen == ["new"]


def test_two_that_share_have_the_engine_and_a_search_waits_for_both() -> None:
    """A chat beside a server; what needs the engine alone gives up when it is cancelled."""
    jobs, cancel = Jobs(), threading.Event()
    cancel.set()
    with (
        jobs.engine_turn(cancel, shares=True) as first,
        jobs.engine_turn(cancel, shares=True) as second,
        jobs.engine_turn(cancel, shares=True) as third,
    ):
        assert (first, second, third) == (True, True, False)
    with jobs.engine_turn(cancel, shares=True), jobs.engine_turn(cancel) as alone:
        assert not alone
    with jobs.engine_turn(cancel) as alone:
        assert alone
        with jobs.engine_turn(cancel, shares=True) as beside:
            assert not beside


def test_engine_goes_to_one_job_at_a_time(qtbot: QtBot) -> None:
    """A chat must wait for the search to end, and give up when it is cancelled."""
    jobs = Jobs()
    seen: list[object] = []

    def search(cancel: threading.Event) -> Iterator[object]:
        with jobs.engine_turn(cancel) as is_ours:
            yield ("search", is_ours)
            cancel.wait()

    def chat(cancel: threading.Event) -> Iterator[object]:
        with jobs.engine_turn(cancel) as is_ours:
            yield ("chat", is_ours)

    def begin(work: object) -> Job:
        job = jobs.start("work", work)  # type: ignore[arg-type]
        job.event_arrived.connect(seen.append)
        return job

    first = begin(search)
    qtbot.waitUntil(lambda: seen == [("search", True)])
    second = begin(chat)
    second.cancel()
    qtbot.waitUntil(lambda: ("chat", False) in seen)
    first.cancel()
    qtbot.waitUntil(lambda: not jobs.running())
    begin(chat)
    qtbot.waitUntil(lambda: ("chat", True) in seen)
    qtbot.waitUntil(lambda: not jobs.running())
