"""Severity discipline on recorded machines: a healthy one is left in peace."""

from pathlib import Path

import pytest

from app.advice.rules import findings
from app.domain.finding import Finding, Severity
from tests.fakes.recorded import MACHINES, situation_of

HEALTHY = (
    *("nvidia-desktop", "amd-desktop", "intel-arc", "windows-desktop", "twin-3090", "gb10"),
    *("two-nvidia", "windows-apu", "windows-no-gpu", "jetson", "mig-server", "h200-vm", "wsl2"),
    *("egpu-laptop", "amd-apu", "hybrid-amd-nvidia", "hybrid-awake", "no-gpu", "intel-b580"),
    *("amd-no-rebar", "dgpu-switched-off"),
)
EXPECTED = {
    "driver-mismatch": {"driver_mismatch"},
    "gpu-lost": {"gpu_lost"},
    "windows-tweaked": {"tdr_off", "tcc_timeout", "driver_resets"},
    "windows-arc": {"tdr_delay_long", "tdr_wrong_type"},
    "windows-laptop": {"on_battery", "saver_mode", "gpu_preference", "hybrid", "one_memory_module"},
    "windows-tcc": {"mixed_driver_models", "tcc_model"},
    "hybrid-asleep": {"gpu_asleep", "hybrid", "on_battery"},
    "egpu-laptop": {"external_gpu", "unequal_cards", "slot_limits"},
    "mig-server": {"mig_parent"},
    "old-card": {"no_avx", "old_nvidia_driver"},
    "amd-apu": {"backend_sees_carve_out", "carve_out"},
    "amd-no-rebar": {"rebar_off", "short_compute_timeout"},
    "intel-b580": {"rebar_off_arc", "memory_taken"},
    "dgpu-switched-off": {"dgpu_switched_off", "hybrid_cpu"},
    "laptop-throttled": {"too_hot", "power_limit_fixed"},
    "no-driver": {"no_nvidia_driver"},
    "wsl2": {"in_wsl"},
    "jetson": {"unified_memory"},
    "numa-server": {"several_nodes", "driver_unloads"},
    "container": {"in_container", "no_gpu", "little_ram"},
}


def found_on(name: str) -> tuple[Finding, ...]:
    return findings(situation_of(MACHINES / name))


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_machine_shows_no_problem_and_few_hints(name: str) -> None:
    """A machine in good order: no problem, no warning, at most two hints."""
    severities = [finding.severity for finding in found_on(name)]
    assert Severity.PROBLEM not in severities
    assert Severity.WARNING not in severities
    assert severities.count(Severity.HINT) <= 2


@pytest.mark.parametrize("name", EXPECTED)
def test_recorded_machine_gets_its_advice(name: str) -> None:
    """What a recorded machine is known for is said."""
    assert EXPECTED[name] <= {finding.id for finding in found_on(name)}


def test_full_carve_out_is_no_alarm() -> None:
    """A processor's 512 MiB, 96 % full, are not "memory low"."""
    assert "memory_low" not in {f.id for f in found_on("amd-apu-battery")}


def test_versions_under_wsl_are_no_mismatch() -> None:
    """Windows' driver version differs from WSL's own: that is normal."""
    assert "driver_mismatch" not in {f.id for f in found_on("wsl2")}


def test_idle_link_is_no_defect() -> None:
    """Links that slow down at idle give no advice."""
    assert "narrow_link" not in {f.id for f in found_on("twin-3090")}


@pytest.mark.parametrize("path", sorted(MACHINES.iterdir()), ids=lambda path: path.name)
def test_no_recorded_machine_breaks_a_rule(path: Path) -> None:
    """Every rule runs on every recorded machine."""
    assert isinstance(findings(situation_of(path)), tuple)
