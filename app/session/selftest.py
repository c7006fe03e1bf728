"""Runs the self-test on the machine of a session: with which model, and which rig."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from app import library
from app.domain.errors import EnvironmentProblem
from app.domain.finding import Check, CheckStatus
from app.domain.model import ModelSpec
from app.rig.interface import Rig
from app.rig.lease import Lease
from app.session.doctor import examine
from app.session.doctor_history import keep_run, last_run
from app.session.engines import profile_checks
from app.session.here import Here
from app.session.opening import runnable
from app.session.patience import HEADER_S, read_header, resolve_and_read
from app.store import Profile


def self_test(here: Here, profiles: Callable[[], Sequence[Profile]]) -> Iterator[Check]:
    """Yield the steps of the self-test as they end.

    Args:
        here: The machine.
        profiles: Returns the stored profiles.

    A place for files that cannot be written is a failed step; the others are still tried.

    Raises:
        EnvironmentProblem: This is a recording, or another RigTune measures (``busy``).
    """

    def rig_on(spec: ModelSpec, devices: tuple[str, ...]) -> Rig:
        return here.rig_on(spec, here.machine(wake=True), here.launch, devices)

    here.must_be_here()
    with ExitStack() as held:
        yield from _hold(held)
        yield from examine(
            partial(here.machine, wake=True),
            trial_model,
            rig_on,
            here.read_speeds,
            last_run(),
            keep_run,
            here.look_after_death,
        )
    if here.engine is not None:
        try:
            stored = profiles()
        except EnvironmentProblem as problem:
            yield _problem("store", problem)
        else:
            yield from profile_checks(here.engine, stored)


def _hold(held: ExitStack) -> Iterator[Check]:
    """Hold the devices as long as ``held``; without a place for the lock nobody else can, too.

    Raises:
        EnvironmentProblem: Another RigTune holds them.
    """
    try:
        held.enter_context(Lease("doctor"))
    except EnvironmentProblem as problem:
        if problem.info.code == "busy":
            raise
        yield _problem("lock", problem)


def _problem(check_id: str, problem: EnvironmentProblem) -> Check:
    info = problem.info
    return Check(id=check_id, status=CheckStatus.PROBLEM, text=info.message, hint=info.hint)


def trial_model() -> ModelSpec:
    """Return what the self-test runs: the demo model, else the smallest one found.

    Raises:
        EnvironmentProblem: There is none at all.
    """
    try:
        return resolve_and_read("demo")
    except EnvironmentProblem:
        for found in sorted(library.find_models(), key=lambda m: m.file_bytes):
            with suppress(EnvironmentProblem):
                return runnable(read_header(Path(found.path), HEADER_S))
        raise
