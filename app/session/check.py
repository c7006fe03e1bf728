"""Measures a command line of the user's in turns with the search's answer."""

import threading
from collections.abc import Generator, Iterator
from contextlib import closing

import msgspec

from app.domain.check import Checked, CheckSide, CheckVerdict, Difference
from app.domain.errors import ErrorInfo, UsageProblem
from app.domain.events import (
    Event,
    SweepEvent,
    SweepFinished,
    TrialFinished,
    TrialProgress,
    TrialStarted,
)
from app.domain.memory import MemoryEstimate
from app.domain.outcome import OUTCOMES
from app.domain.settings import SETTINGS, FlashAttn, Settings
from app.domain.sweep import Reason, SweepPlan, SweepResult
from app.domain.trial import Trial, TrialRequest, Workload
from app.domain.units import format_bytes
from app.export.command import Command
from app.rig.interface import Rig
from app.session.command_settings import resolve
from app.sweep.compare import TIE_FRAC, difference
from app.sweep.points import Point, build_points, demand
from app.sweep.stats import rate

STAGE = "check"
TURNS = 2
MIN_REPS, MAX_REPS, MAX_S = 3, 8, 20.0


class CommandChecked(Event, frozen=True, kw_only=True, tag="command.checked"):
    """The comparison is done."""

    check: Checked


def and_check(
    events: Iterator[SweepEvent],
    plan: SweepPlan,
    rig: Rig,
    command: Command | None,
    cancel: threading.Event,
) -> Iterator[SweepEvent | CommandChecked]:
    """Yield the events of a search, then those of checking ``command`` against its answer."""
    result = None
    for event in events:
        yield event
        if isinstance(event, SweepFinished):
            result = event.result
    if command is not None and result is not None and not cancel.is_set():
        yield from check_command(command, plan, result, rig, cancel)


def refuse_impossible(command: Command | None, plan: SweepPlan, rig: Rig) -> None:
    """Refuse a command line that cannot be measured, before a search takes its minutes.

    Raises:
        UsageProblem: A value of the command line is impossible.
    """
    if command is not None:
        resolved = resolve(command, rig.space(), rig.dry_run, plan.workload.n_seq)
        _workload(plan.workload, resolved.settings)


def check_command(
    command: Command, plan: SweepPlan, result: SweepResult, rig: Rig, cancel: threading.Event
) -> Iterator[SweepEvent | CommandChecked]:
    """Yield the events of the comparison; the last one holds it.

    Args:
        command: The user's command line.
        plan: The search's plan.
        result: The search's answer; without one the command line is measured alone.
        rig: Where to measure, as the search left it.
        cancel: Checked at every event; what was measured until then is compared.

    Raises:
        UsageProblem: A value of the command line is impossible.
    """
    resolved = resolve(command, rig.space(), rig.dry_run, plan.workload.n_seq)
    theirs = resolved.settings
    ours = result.recommended.settings if result.recommended else None
    workload, notes = _workload(plan.workload, theirs)
    notes = [*resolved.notes, *notes]
    need = rig.dry_run(theirs)
    refused = _refused(need)
    order = [] if refused else [theirs]
    if ours is not None and not _is_same(theirs, ours) and not refused:
        order = [theirs, ours] * TURNS
    first = len(result.trials)
    trials = yield from _run(order, workload, rig, first, cancel)
    points = build_points(trials, workload, demand(plan))
    sides = [_side(s, trials, points) for s in (theirs, ours or theirs)]
    if refused is not None:
        sides[0] = CheckSide(settings=theirs, device_bytes=need.device_bytes(), error=refused)
    checked = Checked(
        program=command.program,
        verdict=CheckVerdict.NOT_MEASURED,
        theirs=sides[0],
        ours=sides[1],
        workload=workload,
        differences=_differences(theirs, ours) if ours else (),
        notes=tuple(notes),
        ignored=command.ignored,
        n_model_loads=len({t.load_id for t in trials}),
    )
    yield CommandChecked(check=_judged(checked, points, theirs, ours))


def _workload(wanted: Workload, theirs: Settings) -> tuple[Workload, list[Reason]]:
    """Return what both can be timed with: the goal's workload as far as theirs holds it.

    Raises:
        UsageProblem: Their context cannot hold even a short prompt.
    """
    n_seq = min(wanted.n_seq, theirs.n_seq_max)
    room = theirs.n_ctx // theirs.n_seq_max
    n_prompt = min(wanted.n_prompt, room - wanted.n_gen)
    if n_prompt < 1:
        message = f"A context of {room} tokens per slot holds no prompt and {wanted.n_gen} tokens."
        raise UsageProblem("check_context_too_small", message, "Give the command a larger -c.")
    depth = min(wanted.depth, room - n_prompt - wanted.n_gen)
    workload = Workload(n_prompt=n_prompt, n_gen=wanted.n_gen, depth=depth, n_seq=n_seq)
    notes = []
    if workload != wanted:
        data = {"n_prompt": n_prompt, "depth": depth, "n_seq": n_seq}
        notes.append(Reason(code="smaller_workload", data=dict(data)))
    return workload, notes


def _refused(need: MemoryEstimate) -> ErrorInfo | None:
    """Return why it is not launched: a dry run that does not fit would end in a crash."""
    if need.note is not None:
        hint = "The engine refuses these settings, so llama.cpp would too."
        return ErrorInfo(code="engine_refuses", message=need.note, hint=hint)
    for device in need.devices:
        free = device.free_bytes
        if device.device != "host" and free is not None and device.total_bytes > free:
            return ErrorInfo(
                code="does_not_fit",
                message=f"It needs {format_bytes(device.total_bytes)} on {device.device}, where "
                f"{format_bytes(free)} are free.",
                hint="It would fail, or spill into system memory and be slow: not launched.",
            )
    return None


def _run(
    order: list[Settings], workload: Workload, rig: Rig, first: int, cancel: threading.Event
) -> Generator[SweepEvent, None, list[Trial]]:
    """Run the configurations in ``order``; one that failed is not tried again."""
    trials: list[Trial] = []
    failed: set[Settings] = set()
    for settings in order:
        if settings in failed:
            continue
        request = TrialRequest(
            stage=STAGE,
            settings=settings,
            workload=workload,
            min_reps=MIN_REPS,
            max_reps=MAX_REPS,
            max_s=MAX_S,
        )
        index = first + len(trials)
        yield TrialStarted(index=index, request=request)
        with closing(rig.run_trial(request)) as events:  # type: ignore[type-var]
            for event in events:
                if cancel.is_set():
                    return trials
                if isinstance(event, TrialFinished):
                    trials.append(event.trial)
                    yield TrialFinished(index=index, trial=event.trial)
                elif isinstance(event, TrialProgress):
                    yield event
        if not trials or not OUTCOMES[trials[-1].outcome].has_speed:
            failed.add(settings)
    return trials


def _side(settings: Settings, trials: list[Trial], points: dict[Settings, Point]) -> CheckSide:
    own = [t for t in trials if t.request.settings == settings]
    if not own:
        return CheckSide(settings=settings)
    last = own[-1]
    point = _point(settings, points)
    return CheckSide(
        settings=last.effective or settings,
        outcome=last.outcome,
        prefill_tok_s=rate([s for t in own for s in t.prefill]),
        decode_tok_s=rate([s for t in own for s in t.decode]),
        request_s=None if point is None or point.request is None else point.request.median,
        device_bytes=last.device_bytes,
        error=last.error,
    )


def _point(settings: Settings, points: dict[Settings, Point]) -> Point | None:
    """Return the point of ``settings``, whatever flash attention the engine decided on."""
    return next((p for p in points.values() if _is_same(p.settings, settings)), None)


def _judged(
    checked: Checked, points: dict[Settings, Point], theirs: Settings, ours: Settings | None
) -> Checked:
    if ours is not None and _is_same(theirs, ours):
        return msgspec.structs.replace(checked, verdict=CheckVerdict.SAME)
    a = _point(ours, points) if ours else None
    b = _point(theirs, points)
    if a is None or b is None or a.request is None or b.request is None:
        return checked
    gap = difference(a, b)
    verdict = CheckVerdict.NOT_SEPARATED
    if gap.low > 0 and gap.median > TIE_FRAC:
        verdict = CheckVerdict.SLOWER
    elif gap.high < 0 and gap.median < -TIE_FRAC:
        verdict = CheckVerdict.FASTER
    return msgspec.structs.replace(
        checked,
        verdict=verdict,
        slower_frac=gap.median,
        slower_low_frac=gap.low,
        slower_high_frac=gap.high,
    )


def _is_same(a: Settings, b: Settings) -> bool:
    return not _differences(a, b)


def _differences(theirs: Settings, ours: Settings) -> tuple[Difference, ...]:
    return tuple(
        Difference(name=info.name, theirs=_text(x), ours=_text(y))
        for info in SETTINGS
        if (x := _concrete(theirs, info.name)) != (y := _concrete(ours, info.name))
    )


def _concrete(settings: Settings, name: str) -> object:
    """Return a setting with what stands for "as usual" filled in."""
    value: object = getattr(settings, name)
    if name == "n_threads_batch" and not value:
        return settings.n_threads
    if name == "flash_attn" and value is FlashAttn.AUTO:
        return FlashAttn.ON
    return value


def _text(value: object) -> str:
    return ",".join(value) or "none" if isinstance(value, tuple) else str(value) or "none"
