"""Whatever a machine, a plan or a trial says, advice neither breaks nor shows rubbish."""

import math
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.advice.rule import Situation
from app.advice.rules import findings
from app.advice.text import LANGUAGES, render, verification
from app.cli.probe_text import gpu_details, host_rows, timeout_rows
from app.domain.machine import GpuInfo, GpuSample, HostSample, Machine, WindowsSettings
from app.domain.sweep import SweepPlan
from app.domain.trial import Trial
from app.machine import merge_samples
from app.session.doctor_devices import device_checks
from tests.fakes import situations as s
from tests.fakes.records import records

SLOW = settings(
    max_examples=40,
    deadline=None,
    # Whole machines shrink for minutes; the failing one is printed anyway.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def say_everything(situation: Situation) -> None:
    for finding in findings(situation):
        for language in LANGUAGES:
            for section in ("finding", "remedy"):
                assert render(section, finding.id, finding.evidence, language)
            verification(finding, language)


@SLOW
@given(records(Machine), st.lists(records(GpuSample), max_size=2), records(HostSample))
def test_any_machine_can_be_advised(
    machine: Machine, samples: list[GpuSample], host: HostSample
) -> None:
    """Any values in any field: rules, sentences and the self-test's lines hold."""
    read = {gpu.key: tuple(samples) for gpu in machine.gpus}
    say_everything(Situation(machine=machine, samples=read, host_sample=host))
    assert isinstance(list(device_checks(machine)), list)


@SLOW
@given(records(SweepPlan), st.lists(records(Trial), max_size=2))
def test_any_plan_and_trial_can_be_advised(plan: SweepPlan, trials: list[Trial]) -> None:
    """Any plan and any trial, however impossible."""
    say_everything(Situation(machine=s.machine(), plan=plan, trials=tuple(trials)))


@SLOW
@given(records(GpuInfo), st.lists(records(GpuSample), max_size=3), records(WindowsSettings))
def test_any_reading_can_be_shown(
    info: GpuInfo, samples: list[GpuSample], windows: WindowsSettings
) -> None:
    """The page of `rigtune probe` takes any reading."""
    known = tuple(t for t in windows.timeouts if t.source in {"default", "registry"})
    shown = msgspec.structs.replace(windows, timeouts=known)
    assert isinstance(gpu_details(info, merge_samples(samples)), list)
    assert timeout_rows(shown)
    assert host_rows(s.host(windows=shown))


@pytest.mark.parametrize("field", ["temp_c", "power_limit_w", "busy_pct", "temp_margin_c"])
def test_not_a_number_fires_no_warning(field: str) -> None:
    """A reading that is no number compares with nothing."""
    odd: dict[str, Any] = {field: math.nan}
    situation = s.seen(**odd)
    clean = {f.id for f in findings(s.seen())}
    assert {f.id for f in findings(situation)} <= clean
    assert findings(replace(situation, samples={})) is not None
