"""One search of a real model or of a recorded machine, and what is tried beside its answer."""

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from app.advice.rules import plan_findings
from app.domain.events import SweepEvent, SweepFinished
from app.domain.machine import HostInfo, Machine
from app.domain.model import ModelSpec
from app.domain.sweep import SweepPlan, SweepRequest, SweepResult, SweepStatus
from app.export import Command
from app.rig.process import Launch
from app.rig.replay import ReplayRig
from app.rig.replay_check import read_replay
from app.session.check import CommandChecked, and_check, check_command, refuse_impossible
from app.session.draft import DraftTried, keep_draft, need_of, try_draft
from app.session.evidence import Looking, RamRead, until_cancelled, with_evidence
from app.session.opening import Bounds, Learned, open_rig
from app.session.tuning import Tuning, advised, follow, with_reserve
from app.store import Store
from app.sweep.plan import make_plan
from app.telemetry import Telemetry


class Place(NamedTuple):
    """Where a search happens and where it is kept."""

    machine: Machine
    launch: Launch
    telemetry: Telemetry
    store: Store
    ram_read: RamRead
    learned: Learned
    host_now: Callable[[], HostInfo]


class Extras(NamedTuple):
    """What to try beside the answer: a command line, drafts, and the model that drafts."""

    command: Command | None = None
    draft: str | None = None
    drafter: ModelSpec | None = None


def search_and_try(
    spec: ModelSpec,
    request: SweepRequest,
    place: Place,
    cancel: threading.Event,
    *,
    extras: Extras,
    resume: bool,
    record: str | None,
) -> Iterator[SweepEvent | CommandChecked | DraftTried]:
    """Yield the events of a search of ``spec``, then those of what is tried.

    Raises:
        EnvironmentProblem: The engine cannot be used, or the request cannot be met.
    """
    bounds = Bounds(headroom_bytes=request.headroom_bytes, reserve_bytes=request.reserve_bytes)
    rig, memory = open_rig(
        spec, place.machine, place.launch, devices=request.devices, bounds=bounds,
        telemetry=place.telemetry, learned=place.learned,
    )  # fmt: skip
    try:
        tuning = Tuning(place.store, spec, place.machine, request)
        resumed = tuning.interrupted() if resume else None
        plan = make_plan(request, rig.space(), rig.dry_run)
        refuse_impossible(extras.command, plan, rig)
        if resume:
            found = tuning.changes() if resumed is None else ("resumed",)
            notes = (*plan.notes, *(found or ("nothing_to_resume",)))
            plan = msgspec.structs.replace(plan, notes=notes)
        findings = plan_findings(place.machine, plan)
        plan = msgspec.structs.replace(plan, findings=findings)

        def look_again(result: SweepResult) -> Looking:
            result = advised(result, place.machine, plan, place.host_now)
            looking = with_evidence(result, plan, rig, memory, place.machine.host, place.ram_read)
            return until_cancelled(looking, result, cancel)

        path = Path(record) if record else None
        result = None
        for event in tuning.run(
            plan, rig, cancel, resumed=resumed, record=path, look_again=look_again
        ):
            result = event.result if isinstance(event, SweepFinished) else None
            yield event
        if result is None or cancel.is_set():
            return
        if result.status is SweepStatus.FAILED and result.recommended is not None:
            return  # something ended it from outside: nothing can be compared any more
        if extras.draft is not None:
            need = need_of(extras.drafter, place.machine, request.devices)
            tried = yield from try_draft(extras.drafter, need, result, rig)
            keep_draft(tried.result, result, place.store)
            yield tried
        if extras.command is not None:
            yield from check_command(extras.command, plan, result, rig, cancel)
    finally:
        rig.close()


def with_advice(
    events: Iterable[SweepEvent], machine: Machine, plan: SweepPlan
) -> Iterator[SweepEvent]:
    """Yield ``events``; the result with the advice that follows from it."""
    for event in events:
        if isinstance(event, SweepFinished):
            yield SweepFinished(result=advised(event.result, machine, plan))
        else:
            yield event


def replay_and_check(
    path: Path,
    request: SweepRequest,
    seed: int | None,
    cancel: threading.Event,
    command: Command | None = None,
) -> Iterator[SweepEvent | CommandChecked]:
    """Yield the events of a search on a recorded machine, then those of checking ``command``."""
    replay = with_reserve(read_replay(path), request.reserve_bytes)
    rig = ReplayRig(replay, seed, headroom_bytes=request.headroom_bytes)
    plan = make_plan(request, rig.space(), rig.dry_run)
    refuse_impossible(command, plan, rig)
    # Of the machine it was recorded on nothing is known but what the plan holds.
    machine = Machine(host=HostInfo(os="unknown"))
    plan = msgspec.structs.replace(plan, findings=plan_findings(machine, plan))
    yield from and_check(
        with_advice(follow(plan, rig, cancel), machine, plan), plan, rig, command, cancel
    )
