"""Advice about a machine, a plan or a result: all rules, and what they find."""

from collections.abc import Mapping

from app.advice.device_rules import DEVICE_RULES
from app.advice.plan_rules import PLAN_RULES
from app.advice.result_rules import RESULT_RULES
from app.advice.rule import Rule, Situation, name_of
from app.advice.state_rules import STATE_RULES
from app.advice.windows_rules import WINDOWS_RULES
from app.domain.finding import Finding, Severity
from app.domain.machine import GpuSample, Machine

__all__ = ["RULES", "Situation", "blocker", "findings", "machine_findings", "name_of"]

BLOCKERS = ("driver_mismatch",)
RULES: tuple[Rule, ...] = (
    *DEVICE_RULES,
    *STATE_RULES,
    *WINDOWS_RULES,
    *PLAN_RULES,
    *RESULT_RULES,
)


def findings(situation: Situation) -> tuple[Finding, ...]:
    """Return what is worth saying about ``situation``, most serious first."""
    order = list(Severity)[::-1]
    found = [
        Finding(
            id=rule.id,
            severity=rule.severity,
            evidence=evidence,
            actor=rule.actor,
            source=rule.source,
        )
        for rule in RULES
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
    machine: Machine, samples: Mapping[str, tuple[GpuSample, ...]] | None = None
) -> tuple[Finding, ...]:
    """Return what is worth saying about a machine, most serious first.

    Args:
        machine: Host, GPUs and engine.
        samples: Newest readings by GPU key, where there are any.
    """
    return findings(Situation(machine=machine, samples=samples or {}))
