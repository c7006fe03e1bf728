"""One search of a real model or of a recorded machine, and what is tried beside its answer."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from app.domain.events import SweepEvent, SweepFinished
from app.domain.machine import Machine
from app.domain.model import ModelSpec
from app.domain.sweep import SweepRequest, SweepResult
from app.export import Command
from app.rig.process import Launch
from app.rig.replay import ReplayRig
from app.session.check import CommandChecked, and_check, check_command
from app.session.draft import DraftTried, need_of, try_draft
from app.session.evidence import Looking, RamRead, with_evidence
from app.session.opening import open_rig
from app.session.tuning import Tuning, follow
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
    rig, memory = open_rig(
        spec, place.machine, place.launch, devices=request.devices,
        headroom_bytes=request.headroom_bytes, telemetry=place.telemetry,
    )  # fmt: skip
    try:
        tuning = Tuning(place.store, spec, place.machine, request)
        resumed = tuning.interrupted() if resume else None
        plan = make_plan(request, rig.space(), rig.dry_run)
        if resume:
            found = tuning.changes() if resumed is None else ("resumed",)
            notes = (*plan.notes, *(found or ("nothing_to_resume",)))
            plan = msgspec.structs.replace(plan, notes=notes)

        def look_again(result: SweepResult) -> Looking:
            return with_evidence(result, plan, rig, memory, place.machine.host, place.ram_read)

        path = Path(record) if record else None
        result = None
        for event in tuning.run(
            plan, rig, cancel, resumed=resumed, record=path, look_again=look_again
        ):
            result = event.result if isinstance(event, SweepFinished) else None
            yield event
        if result is None or cancel.is_set():
            return
        if extras.draft is not None:
            need = need_of(extras.drafter, place.machine, request.devices)
            yield (yield from try_draft(extras.draft, extras.drafter, need, result, rig))
        if extras.command is not None:
            yield from check_command(extras.command, plan, result, rig, cancel)
    finally:
        rig.close()


def replay_and_check(
    path: Path,
    request: SweepRequest,
    seed: int | None,
    cancel: threading.Event,
    command: Command | None = None,
) -> Iterator[SweepEvent | CommandChecked]:
    """Yield the events of a search on a recorded machine, then those of checking ``command``."""
    rig = ReplayRig(path, seed, headroom_bytes=request.headroom_bytes)
    plan = make_plan(request, rig.space(), rig.dry_run)
    yield from and_check(follow(plan, rig, cancel), plan, rig, command, cancel)
