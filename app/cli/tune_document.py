"""``rigtune.tune/1``: the search's answer as JSON."""

from app.cli.findings import FindingView
from app.cli.findings import view_of as finding_view
from app.domain.check import Checked
from app.domain.draft import DraftResult
from app.domain.errors import ErrorInfo
from app.domain.machine import EngineInfo, HostInfo, Machine, PowerSource
from app.domain.outcome import Outcome
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import (
    Cliff,
    ContextPoint,
    Reason,
    Recommended,
    SweepResult,
    SweepStatus,
    Tie,
)
from app.domain.trial import Rate, Sample, TelemetryWindow, Trial, Workload
from app.session.capsweep import CapsResult
from app.sweep.stats import rate


class TrialView(Record, frozen=True, kw_only=True):
    """One trial with its derived rates beside the raw samples."""

    load_id: int
    stage: str
    settings: Settings
    requested: Settings
    workload: Workload
    outcome: Outcome
    prefill_tok_s: Rate | None
    decode_tok_s: Rate | None
    prefill_samples: tuple[Sample, ...]
    decode_samples: tuple[Sample, ...]
    device_bytes: dict[str, int]
    shared_growth_bytes: int | None
    load_s: float | None
    elapsed_s: float
    telemetry: TelemetryWindow | None
    error: ErrorInfo | None


class Baselines(Record, frozen=True, kw_only=True):
    """What the answer is compared with."""

    auto_fit: Recommended | None
    cpu: Recommended | None


class EngineView(Record, frozen=True, kw_only=True):
    """The build everything was measured with.

    Attributes:
        version: Version of the binding.
        llama_version: What llama.cpp calls itself.
        commit: Its commit, where known.
        backends: Loaded backends.
        directory: Folder of the user's own libraries (``--engine-dir``).
    """

    version: str
    llama_version: str
    commit: str | None
    backends: tuple[str, ...]
    directory: str | None


class PowerView(Record, frozen=True, kw_only=True):
    """How the machine was powered when the search began; a change underway is in the trials."""

    source: PowerSource
    mode: str | None
    battery_pct: float | None


class TuneDocument(Record, frozen=True, kw_only=True):
    """``rigtune.tune/1``."""

    schema: str = "rigtune.tune/1"
    status: SweepStatus
    recommended: Recommended | None
    knee: Recommended | None
    cliff: Cliff | None
    baseline: Baselines
    context_curve: tuple[ContextPoint, ...]
    trials: tuple[TrialView, ...]
    n_trials: int
    n_model_loads: int
    measured_s: float
    virtual_s: float
    reasons: tuple[Reason, ...]
    ties: tuple[Tie, ...]
    findings: tuple[FindingView, ...]
    caps: CapsResult | None
    error: ErrorInfo | None
    engine: EngineView | None = None
    power: PowerView | None = None
    check: Checked | None = None
    draft: DraftResult | None = None


def engine_view(engine: EngineInfo | None) -> EngineView | None:
    """Return the JSON view of an engine build."""
    if engine is None:
        return None
    return EngineView(
        version=engine.version,
        llama_version=engine.llama_version,
        commit=engine.commit,
        backends=engine.backends,
        directory=engine.directory,
    )


def power_view(host: HostInfo) -> PowerView:
    """Return the JSON view of the power conditions."""
    return PowerView(source=host.power_source, mode=host.power_mode, battery_pct=host.battery_pct)


def document_of(
    result: SweepResult,
    machine: Machine | None = None,
    check: Checked | None = None,
    draft: DraftResult | None = None,
    caps: CapsResult | None = None,
) -> TuneDocument:
    """Return the JSON view of a search's result.

    Args:
        result: The result.
        machine: Where it was measured; ``None`` = a recording.
        check: A command line of the user's beside it.
        draft: What trying drafts on it showed.
        caps: The power limits measured after it.
    """
    return TuneDocument(
        status=result.status,
        recommended=result.recommended,
        knee=result.knee,
        cliff=result.cliff,
        baseline=Baselines(auto_fit=result.baseline_auto_fit, cpu=result.baseline_cpu),
        context_curve=result.context_curve,
        trials=tuple(view_of(trial) for trial in result.trials),
        n_trials=len(result.trials),
        n_model_loads=result.n_model_loads,
        measured_s=result.measured_s,
        virtual_s=result.virtual_s,
        reasons=result.reasons,
        ties=result.ties,
        findings=tuple(finding_view(finding) for finding in result.findings),
        caps=caps,
        error=result.error,
        engine=engine_view(machine.engine) if machine else None,
        power=power_view(machine.host) if machine else None,
        check=check,
        draft=draft,
    )


def view_of(trial: Trial) -> TrialView:
    """Return the JSON view of a trial."""
    return TrialView(
        load_id=trial.load_id,
        stage=trial.request.stage,
        settings=trial.effective or trial.request.settings,
        requested=trial.request.settings,
        workload=trial.request.workload,
        outcome=trial.outcome,
        prefill_tok_s=rate(trial.prefill),
        decode_tok_s=rate(trial.decode),
        prefill_samples=trial.prefill,
        decode_samples=trial.decode,
        device_bytes=trial.device_bytes,
        shared_growth_bytes=trial.shared_growth_bytes,
        load_s=trial.load_s,
        elapsed_s=trial.elapsed_s,
        telemetry=trial.telemetry,
        error=trial.error,
    )
