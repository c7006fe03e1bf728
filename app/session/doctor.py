"""The self-test: does everything RigTune needs work here, and what would mend it.

On a machine with several GPUs it also says which card each backend would take, who draws the
desktop, and shows with a short trial on each device what the choice is worth.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from app.advice.result_rules import largest_ubatch, time_limit_s
from app.advice.rules import machine_findings
from app.advice.text import render
from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import TrialFinished
from app.domain.finding import Check, CheckStatus, Severity
from app.domain.machine import EngineInfo, GpuKind, HostInfo, Machine
from app.domain.model import ModelSpec
from app.domain.outcome import OUTCOMES
from app.domain.settings import Settings
from app.domain.trial import Trial, TrialRequest, Workload
from app.domain.units import MISSING, format_tok_s
from app.machine import kind_of, placement, stayed_empty
from app.rig.interface import Rig
from app.runtime import atomic_write, data_dir, missing_files, write_problem
from app.session.aftermath import LookAfterDeath, explained, nothing_seen
from app.session.doctor_devices import device_checks
from app.session.doctor_history import DoctorRun, compared, new_run
from app.session.views import ReadSpeeds, speeds_text
from app.sweep.stats import rate

T = TypeVar("T")

TEST_FILE, TEST_BYTES = "doctor.test", 256 << 10
"""A search's results need about this much."""

SMALL_WORKLOAD = Workload(n_prompt=64, n_gen=16)
TRIAL_S = 5.0
"""Soft bound of the timed part of one trial."""
STATUS = {
    Severity.WARNING: CheckStatus.WARNING,
    Severity.PROBLEM: CheckStatus.PROBLEM,
}
"""Findings that the self-test repeats; hints and good-to-knows are `rigtune probe`'s."""

OpenRig = Callable[[ModelSpec, tuple[str, ...]], Rig]


def examine(
    machine: Callable[[], Machine],
    small_model: Callable[[], ModelSpec],
    open_rig: OpenRig,
    read_speeds: Callable[[str], ReadSpeeds],
    before: DoctorRun | None = None,
    keep: Callable[[DoctorRun], None] = lambda _: None,
    after_death: LookAfterDeath = nothing_seen,
) -> Iterator[Check]:
    """Yield one check after the other; a failed one never stops the rest.

    Args:
        machine: Looks at probes and engine.
        small_model: Reads the model that trials run.
        open_rig: Opens a rig for a model on the named devices (none = CPU).
        read_speeds: Measures RAM and the disk of that model.
        before: The last self-test, to compare speeds with.
        keep: Stores this one's speeds.
        after_death: Looks whether a driver was reset under a trial that failed.
    """
    yield from _installation()
    yield _folder()
    seen, found = _try(machine)
    yield found or _ok("engine", f"The engine starts: {_engine_text(seen)}")
    spec, found = _try(small_model)
    yield _ok("model", f"Trials run {spec.name} ({spec.path})") if spec else _no_model(found)
    if seen is not None:
        yield from _drivers(seen)
        yield from device_checks(seen)
        yield from _findings(seen)
    if seen is None or seen.engine is None or spec is None:
        return
    path = spec.path
    measured, found = _try(lambda: read_speeds(path))
    yield found or _ok("read_speeds", speeds_text(measured) if measured is not None else MISSING)
    speeds: dict[str, float] = {}
    for devices in ((), *((device.name,) for device in seen.engine.devices)):
        trial, failed = _trial(spec, devices, open_rig)
        check = failed or _said(trial, devices, seen, speeds, after_death)
        where = _where(devices)
        if where in speeds:
            told = compared(before, spec.name, where, speeds[where])
            check = msgspec.structs.replace(check, text=check.text + told)
        yield check
        if trial is not None:
            yield from _within_limit(trial, devices, seen)
    yield from _comparison(seen, speeds)
    run = new_run(spec.name, _conditions(seen.host), speeds)
    _, found = _try(lambda: keep(run))
    yield from [found] if found is not None and speeds else []


def _installation() -> Iterator[Check]:
    if lost := missing_files():
        text = f"Files of this installation are missing ({len(lost)}): {', '.join(lost[:3])}"
        hint = "A virus scanner may have moved them away. Install RigTune again; results stay."
        yield Check(id="installation", status=CheckStatus.PROBLEM, text=text, hint=hint)


def _folder() -> Check:
    """Write a small file where results go: a folder may look fine on a disk that is full."""
    try:
        folder = data_dir()
        test = folder / TEST_FILE
        atomic_write(test, bytes(TEST_BYTES))
        test.unlink()
    except EnvironmentProblem as problem:
        return _problem("folder", problem)
    except OSError as error:
        return _problem("folder", write_problem(error, test))
    return _ok("folder", f"Results are kept in {folder}")


def _try(do: Callable[[], T]) -> tuple[T | None, Check | None]:
    """Return what ``do`` gives, or the check that says why it gives nothing."""
    try:
        return do(), None
    except EnvironmentProblem as problem:
        return None, _problem(problem.info.code, problem)


def _no_model(found: Check | None) -> Check:
    """A machine without any model is not broken; only nothing can be tried on its devices."""
    text = f"No trial can run: {found.text if found is not None else 'there is no model.'}"
    hint = found.hint if found is not None else ""
    return Check(id="model", status=CheckStatus.WARNING, text=text, hint=hint)


def _ok(check_id: str, text: str) -> Check:
    return Check(id=check_id, status=CheckStatus.OK, text=text)


def _engine_text(machine: Machine | None) -> str:
    engine = machine.engine if machine is not None else None
    if engine is None:
        return "no engine"
    devices = ", ".join(f"{d.name} ({d.description})" for d in engine.devices)
    return f"{_build(engine)}; devices besides the CPU: {devices or 'none'}"


def _build(engine: EngineInfo) -> str:
    return f"llama.cpp {engine.llama_version}, backends {', '.join(engine.backends)}"


def _drivers(machine: Machine) -> Iterator[Check]:
    for name, reason in machine.unavailable.items():
        why = render("absence", reason, {})
        yield Check(id=f"driver_{name}", status=CheckStatus.SKIPPED, text=f"{name}: {why}")


def _findings(machine: Machine) -> Iterator[Check]:
    for finding in machine_findings(machine):
        status = STATUS.get(finding.severity)
        if status is not None:
            yield Check(
                id=finding.id,
                status=status,
                text=render("finding", finding.id, finding.evidence),
                hint=render("remedy", finding.id, finding.evidence),
            )


def _trial(
    spec: ModelSpec, devices: tuple[str, ...], open_rig: OpenRig
) -> tuple[Trial | None, Check | None]:
    """Return a short trial on ``devices``, or the check that says why there is none."""
    layers = spec.max_gpu_layers if devices else 0
    settings = Settings(n_gpu_layers=layers, n_ctx=512, n_batch=128, n_ubatch=128, devices=devices)
    request = TrialRequest(
        stage="doctor",
        settings=settings,
        workload=SMALL_WORKLOAD,
        min_reps=1,
        max_reps=3,
        max_s=TRIAL_S,
    )
    try:
        rig = open_rig(spec, devices)
        try:
            return _last(rig, request), None
        finally:
            rig.close()
    except EnvironmentProblem as problem:
        return None, _problem(_trial_id(devices), problem)


def _said(
    trial: Trial | None,
    devices: tuple[str, ...],
    machine: Machine,
    speeds: dict[str, float],
    after_death: LookAfterDeath,
) -> Check:
    """Return the check of a finished trial, and note its speed."""
    where, check_id = _where(devices), _trial_id(devices)
    decode = rate(trial.decode) if trial is not None else None
    if trial is None or not OUTCOMES[trial.outcome].has_speed or decode is None:
        label = OUTCOMES[trial.outcome].label if trial is not None else "no result"
        error = trial.error if trial is not None else None
        error = explained(error or ErrorInfo(code="", message=label, hint=""), after_death)
        text = f"A trial on {where} failed: {error.message}"
        return Check(id=check_id, status=CheckStatus.PROBLEM, text=text, hint=error.hint)
    speeds[where] = decode.median
    text = f"A trial on {where} runs: decode {format_tok_s(decode.median)} (measured)"
    growth = trial.telemetry.vram_growth_bytes if trial.telemetry is not None else {}
    other, rise = placement(machine, devices, growth) if devices else (None, 0)
    if other is not None:
        return Check(
            id=check_id,
            status=CheckStatus.WARNING,
            text=f"{text}, but memory rose on {other.key} by {rise >> 20} MiB",
            hint="The engine put the model on another card than asked; report the engine build.",
        )
    empty = stayed_empty(machine, devices, growth, trial.device_bytes)
    if empty is not None:
        text += f", but the memory in use on {empty[0].key} did not rise"
        hint = "The driver may have put everything into RAM; restart the computer and try again."
        return Check(id=check_id, status=CheckStatus.WARNING, text=text, hint=hint)
    if other is None and devices and rise:
        text += f"; memory rose there by {rise >> 20} MiB"
    return _ok(check_id, text)


def _within_limit(trial: Trial, devices: tuple[str, ...], machine: Machine) -> Iterator[Check]:
    """Say which prompt batch stays well below the driver's time limit, by what was measured."""
    limit = time_limit_s(machine, devices)
    prefill = rate(trial.prefill)
    if limit is None or not devices or prefill is None:
        return
    n_ubatch = largest_ubatch(trial, limit)
    size = "no prompt batch stays" if n_ubatch is None else f"n_ubatch up to {n_ubatch} stays"
    text = (
        f"{devices[0]} reads {format_tok_s(prefill.median)} of prompt (measured): "
        f"{size} well below the driver's limit of {limit:g} s; "
        "the time grows with the model, so a search checks it with yours"
    )
    yield _ok(f"limit_{devices[0]}", text)


def _comparison(machine: Machine, speeds: dict[str, float]) -> Iterator[Check]:
    """Say what the choice of device is worth, where there was one."""
    if len(speeds) < 2:
        return
    best = max(speeds, key=lambda name: speeds[name])
    worst = min(speeds, key=lambda name: speeds[name])
    factor = speeds[best] / speeds[worst]
    real = (g for g in machine.gpus if g.engine and kind_of(g) is not GpuKind.SOFTWARE)
    first = next((g.engine[0].name for g in real), "the CPU")
    text = f"Fastest with this model: {best}, {factor:.1f} times as fast as {worst}"
    if best == first or first not in speeds:
        yield _ok("best_device", text)
    else:
        hint = f"RigTune would start with {first}; a search measures both with your model."
        yield Check(id="best_device", status=CheckStatus.OK, text=text, hint=hint)


def _where(devices: tuple[str, ...]) -> str:
    return devices[0] if devices else "the CPU"


def _conditions(host: HostInfo) -> str:
    mode = f", {host.power_mode} mode" if host.power_mode is not None else ""
    return f"{host.power_source.value} power{mode}"


def _trial_id(devices: tuple[str, ...]) -> str:
    return f"trial_{devices[0] if devices else 'cpu'}"


def _last(rig: Rig, request: TrialRequest) -> Trial:
    for event in rig.run_trial(request):
        if isinstance(event, TrialFinished):
            return event.trial
    raise EnvironmentProblem("no_result", "the trial ended without a result", "Try again.")


def _problem(check_id: str, problem: EnvironmentProblem) -> Check:
    info = problem.info
    return Check(id=check_id, status=CheckStatus.PROBLEM, text=info.message, hint=info.hint)
