"""Advice about a machine, a plan or a result: all rules, and what they find."""

from collections.abc import Mapping, Sequence

from app.advice.device_rules import DEVICE_RULES
from app.advice.health_rules import HEALTH_RULES
from app.advice.plan_rules import PLAN_RULES
from app.advice.result_rules import RESULT_RULES
from app.advice.rule import Rule, Situation
from app.advice.speed_rules import SPEED_RULES
from app.advice.state_rules import STATE_RULES
from app.advice.windows_rules import WINDOWS_RULES
from app.domain.finding import Finding, Severity
from app.domain.machine import GpuSample, HostSample, Machine
from app.domain.sweep import SweepPlan
from app.domain.trial import Trial

__all__ = [
    "RULES",
    "Situation",
    "blocker",
    "findings",
    "machine_findings",
    "plan_findings",
    "result_findings",
]

BLOCKERS = ("driver_mismatch",)
RULES: tuple[Rule, ...] = (
    *DEVICE_RULES,
    *HEALTH_RULES,
    *STATE_RULES,
    *WINDOWS_RULES,
    *PLAN_RULES,
    *RESULT_RULES,
    *SPEED_RULES,
)


def findings(situation: Situation, rules: tuple[Rule, ...] = RULES) -> tuple[Finding, ...]:
    """Return what ``rules`` have to say about ``situation``, most serious first."""
    order = list(Severity)[::-1]
    host = situation.machine.host
    system = "wsl2" if host.virtualization == "wsl2" else host.os
    found = [
        Finding(
            id=rule.id,
            severity=rule.severity,
            evidence={**evidence, "system": system},
            actor=rule.actor,
            source=rule.source,
        )
        for rule in rules
        for evidence in rule.when(situation)
    ]
    return tuple(sorted(found, key=lambda f: order.index(f.severity)))


def blocker(machine: Machine) -> Finding | None:
    """Return what must be mended before measuring makes sense, if anything.

    With mismatched driver parts the engine would silently measure the processor.
    """
    found = machine_findings(machine)
    return next((f for f in found if f.id in BLOCKERS), None)


def machine_findings(
    machine: Machine,
    samples: Mapping[str, tuple[GpuSample, ...]] | None = None,
    host_sample: HostSample | None = None,
) -> tuple[Finding, ...]:
    """Return what is worth saying about a machine, most serious first.

    Args:
        machine: Host, GPUs and engine.
        samples: Newest readings by GPU key, where there are any.
        host_sample: Newest reading of the host.
    """
    return findings(Situation(machine=machine, samples=samples or {}, host_sample=host_sample))


def plan_findings(machine: Machine, plan: SweepPlan) -> tuple[Finding, ...]:
    """Return what is worth saying about a plan before anything is loaded."""
    return findings(Situation(machine=machine, plan=plan), PLAN_RULES)


def result_findings(
    machine: Machine, trials: Sequence[Trial], plan: SweepPlan | None = None
) -> tuple[Finding, ...]:
    """Return what is worth saying about what was measured.

    Args:
        machine: Where it was measured; of a recording nothing but the host's system is known.
        trials: What was measured, in order.
        plan: The search's plan, if it was a search.
    """
    now = Situation(machine=machine, plan=plan, trials=tuple(trials))
    return findings(now, (*RESULT_RULES, *SPEED_RULES))
