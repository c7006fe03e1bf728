"""The self-test: does everything RigTune needs work here, and what would mend it."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from app.advice.text import render
from app.domain.errors import EnvironmentProblem
from app.domain.events import TrialFinished
from app.domain.finding import Check, CheckStatus
from app.domain.machine import EngineInfo, Machine
from app.domain.model import ModelSpec
from app.domain.outcome import OUTCOMES
from app.domain.settings import Settings
from app.domain.trial import Trial, TrialRequest, Workload
from app.domain.units import format_tok_s
from app.rig.interface import Rig
from app.runtime import data_dir
from app.sweep.stats import rate

T = TypeVar("T")

SMALL_WORKLOAD = Workload(n_prompt=32, n_gen=8)

OpenRig = Callable[[ModelSpec, tuple[str, ...]], Rig]


def examine(
    machine: Callable[[], Machine],
    demo: Callable[[], ModelSpec],
    open_rig: OpenRig,
) -> Iterator[Check]:
    """Yield one check after the other; a failed one never stops the rest.

    Args:
        machine: Looks at probes and engine.
        demo: Reads the demo model.
        open_rig: Opens a rig for a model on the named devices (none = CPU).
    """
    yield _folder()
    seen, found = _try(machine)
    yield found or _ok("engine", f"The engine starts: {_engine_text(seen)}")
    spec, found = _try(demo)
    yield found or _ok("demo_model", f"The demo model is there: {spec.path if spec else None}")
    if seen is not None:
        yield from _drivers(seen)
    if seen is None or seen.engine is None or spec is None:
        return
    for devices in ((), *((device.name,) for device in seen.engine.devices)):
        yield _trial(spec, devices, open_rig)


def _folder() -> Check:
    try:
        return _ok("folder", f"Results are kept in {data_dir()}")
    except EnvironmentProblem as problem:
        return _problem("folder", problem)


def _try(do: Callable[[], T]) -> tuple[T | None, Check | None]:
    """Return what ``do`` gives, or the check that says why it gives nothing."""
    try:
        return do(), None
    except EnvironmentProblem as problem:
        return None, _problem(problem.info.code, problem)


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


def _trial(spec: ModelSpec, devices: tuple[str, ...], open_rig: OpenRig) -> Check:
    where = devices[0] if devices else "the CPU"
    layers = spec.max_gpu_layers if devices else 0
    settings = Settings(n_gpu_layers=layers, n_ctx=512, n_batch=128, n_ubatch=128, devices=devices)
    request = TrialRequest(
        stage="doctor", settings=settings, workload=SMALL_WORKLOAD, min_reps=1, max_reps=1
    )
    check_id = f"trial_{devices[0] if devices else 'cpu'}"
    try:
        rig = open_rig(spec, devices)
        try:
            trial = _last(rig, request)
        finally:
            rig.close()
    except EnvironmentProblem as problem:
        return _problem(check_id, problem)
    if not OUTCOMES[trial.outcome].has_speed:
        message = trial.error.message if trial.error else OUTCOMES[trial.outcome].label
        hint = trial.error.hint if trial.error else ""
        text = f"A trial on {where} failed: {message}"
        return Check(id=check_id, status=CheckStatus.PROBLEM, text=text, hint=hint)
    decode = rate(trial.decode)
    speed = format_tok_s(decode.median if decode else None)
    text = f"A trial on {where} runs: decode {speed} on the demo model"
    return _ok(check_id, text)


def _last(rig: Rig, request: TrialRequest) -> Trial:
    for event in rig.run_trial(request):
        if isinstance(event, TrialFinished):
            return event.trial
    raise EnvironmentProblem("no_result", "the trial ended without a result", "Try again.")


def _problem(check_id: str, problem: EnvironmentProblem) -> Check:
    info = problem.info
    return Check(id=check_id, status=CheckStatus.PROBLEM, text=info.message, hint=info.hint)
