"""Every rule fires where it should, and not on the nearest case where it should not."""

import dataclasses
import re

import msgspec
import pytest

from app.advice.result_rules import largest_ubatch, time_limit_s
from app.advice.rule import Situation
from app.advice.rules import (
    RULES,
    blocker,
    findings,
    machine_findings,
    plan_findings,
    result_findings,
)
from app.advice.text import LANGUAGES, catalogue, render, verification
from app.advice.windows_rules import WINDOWS_RULES
from app.domain.finding import Severity
from app.domain.machine import (
    OWN_ENGINE,
    Gpu,
    GpuInfo,
    GpuKind,
    GpuProcess,
    GpuSample,
    HostInfo,
    Machine,
    PowerSource,
)
from app.domain.units import GIB, MIB
from tests.fakes import situations as s
from tests.fakes.advice_cases import CASES


def ids(situation: Situation) -> set[str]:
    return {finding.id for finding in findings(situation)}


def test_every_rule_has_its_two_cases() -> None:
    """No rule goes untested, and no case is left of a rule that is gone."""
    assert {rule.id for rule in RULES} == set(CASES)
    assert len(RULES) == len(CASES) >= 40


@pytest.mark.parametrize("rule", CASES)
def test_rule_fires_where_it_should(rule: str) -> None:
    """The case of a rule lets that rule fire."""
    assert rule in ids(CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_rule_is_silent_where_it_should_be(rule: str) -> None:
    """The near miss of a rule does not let it fire."""
    assert rule not in ids(CASES[rule][1])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("rule", CASES)
def test_all_texts_of_a_finding_can_be_made(rule: str, language: str) -> None:
    """The evidence of a rule fills every placeholder of its three texts."""
    found = [f for f in findings(CASES[rule][0]) if f.id == rule]
    for finding in found:
        for section in ("finding", "remedy"):
            text = render(section, rule, finding.evidence, language)
            assert text, (section, rule)
            assert "{" not in text, (section, rule)
        assert "{" not in verification(finding, language)


def test_most_serious_comes_first() -> None:
    """Findings are ordered from problem to info."""
    shown = s.seen(throttle=("hw_power_brake", "sw_power_cap", "sw_thermal"))
    severities = [finding.severity for finding in findings(shown)]
    order = list(Severity)[::-1]
    assert severities == sorted(severities, key=order.index)
    assert severities[0] is Severity.PROBLEM


def test_readings_that_are_missing_fire_nothing() -> None:
    """A machine of which nothing could be read gives no warning."""
    empty = Machine(
        host=HostInfo(os="linux"),
        gpus=(Gpu(key="k", info=GpuInfo(probe="p"), engine=()),),
    )
    blank = Situation(machine=empty, samples={"k": (GpuSample(key="k", t_ns=0),)})
    assert {f.severity for f in findings(blank)} <= {Severity.INFO, Severity.HINT}


def test_measuring_is_blocked_while_driver_parts_do_not_fit() -> None:
    """After a driver update the engine would silently measure the processor."""
    found = blocker(s.machine(unavailable={"nvml": "version_mismatch"}))
    assert found is not None
    assert found.id == "driver_mismatch"
    assert blocker(s.machine()) is None


def test_recommended_batch_keeps_a_quarter_of_the_limit() -> None:
    """The batch that is recommended takes at most a quarter of the driver's limit."""
    slow = s.measured(s.trial(prefill_tok_s=100.0), situation=s.on_windows())
    found = next(f for f in findings(slow) if f.id == "submission_near_limit")
    better = found.evidence["better"]
    assert isinstance(better, int)
    assert better / 100.0 <= 2 * 0.25
    assert better * 2 / 100.0 > 2 * 0.25


def test_limit_of_amdgpu_counts_like_windows() -> None:
    """A short compute timeout of the kernel driver bounds the batch as well."""
    fast, slow = (s.only(s.gpu(compute_timeout_ms=ms)) for ms in (60_000, 2_000))
    shown = s.trial(prefill_tok_s=700.0)
    assert "submission_near_limit" in ids(s.measured(shown, situation=slow))
    assert "submission_near_limit" not in ids(s.measured(shown, situation=fast))


def test_machine_findings_take_readings() -> None:
    """Readings given beside the machine are looked at."""
    hot = s.seen(throttle=("hw_thermal",))
    assert "too_hot" in {f.id for f in machine_findings(hot.machine, hot.samples)}
    assert "too_hot" not in {f.id for f in machine_findings(hot.machine)}


def test_a_plan_and_a_result_bring_their_own_advice_only() -> None:
    """What is said of a plan repeats nothing of the machine, and neither does a result."""
    battery = s.plan(hosted=s.host(power_source=PowerSource.BATTERY))
    assert battery.plan is not None
    assert [f.id for f in plan_findings(battery.machine, battery.plan)] == ["battery_search"]
    spilled = s.trial(growth=300 * MIB)
    assert [f.id for f in result_findings(battery.machine, [spilled])] == ["spilled"]


FOREIGN = {
    "windows": (
        r"kernel('s)? (driver|module|log|part)|modules must|journalctl|/sys/|prime-select"
        r"|envycontrol|supergfxctl|powerprofilesctl|modprobe|amdgpu|lockup_timeout|内核(驱动|日志|部分|模块)"
    ),
    "linux": (
        r"device manager|event viewer|registry|control panel|sysmem fallback|task manager"
        r"|settings >|wsl|设备管理器|事件查看器|控制面板|任务管理器|注册表|设置 >"
    ),
}
"""System → words that name something which only the other one has."""
ONLY_THERE = {
    # Linux tools, limits and folders: nothing on Windows lets these fire.
    "windows": {"dgpu_switched_off", "short_compute_timeout", "in_container", "in_wsl"},
    # Windows' own settings and driver models; WSL is neither.
    "linux": {rule.id for rule in WINDOWS_RULES} | {"in_wsl", "reset_in_run"},
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("system", FOREIGN)
@pytest.mark.parametrize("rule", CASES)
def test_advice_speaks_of_the_users_own_system(rule: str, system: str, language: str) -> None:
    """No setting, log or tool of another operating system is named."""
    if rule in ONLY_THERE[system]:
        return
    situation = CASES[rule][0]
    machine = situation.machine
    host = msgspec.structs.replace(machine.host, os=system, virtualization=None)
    there = dataclasses.replace(situation, machine=msgspec.structs.replace(machine, host=host))
    for finding in (f for f in findings(there) if f.id == rule):
        said = [render(part, rule, finding.evidence, language) for part in ("finding", "remedy")]
        said.append(verification(finding, language))
        assert not re.search(FOREIGN[system], " ".join(said), re.IGNORECASE), said


def test_time_limit_is_that_of_the_cards_in_use() -> None:
    """A processor's GPU with a short limit says nothing of work on the card beside it."""
    card = s.gpu(1, s.device("CUDA0"))
    inside = s.igpu(compute_timeout_ms=640)
    inside = msgspec.structs.replace(inside, engine=(s.device("Vulkan0"),))
    both = s.machine(card, inside)
    assert time_limit_s(both, ("CUDA0",)) is None
    assert time_limit_s(both, ("Vulkan0",)) == 0.64
    assert time_limit_s(both, ("CUDA0", "Vulkan0")) == 0.64


def test_cards_without_a_display_have_no_windows_timeout() -> None:
    """Under TCC and MCDM nothing resets a long submission; one WDDM card among them is enough."""
    free, shown = s.gpu(driver_model="tcc"), s.gpu(2, s.device("CUDA1"), driver_model="wddm")
    machine = s.on_windows(None, free, shown).machine
    assert time_limit_s(machine, ("CUDA0",)) is None
    assert time_limit_s(machine, ("CUDA0", "CUDA1")) == 2.0
    off = s.on_windows(s.windows(TdrLevel=0), shown).machine
    assert time_limit_s(off, ("CUDA1",)) is None


@pytest.mark.parametrize(
    ("prefill_tok_s", "limit_s", "n_ubatch"),
    [(1000.0, 2.0, 256), (2048.0, 2.0, 1024), (1e6, 60.0, 4096), (20.0, 2.0, None)],
)
def test_largest_batch_below_a_limit(
    prefill_tok_s: float, limit_s: float, n_ubatch: int | None
) -> None:
    """A quarter of the limit is used at most; where 32 tokens take longer, nothing is named."""
    assert largest_ubatch(s.trial(prefill_tok_s=prefill_tok_s), limit_s) == n_ubatch


def test_nobody_is_asked_to_close_rigtunes_own_engine() -> None:
    """Memory that a chat of RigTune holds is no other program's."""
    own = GpuProcess(pid=1, name=OWN_ENGINE, vram_bytes=6 * GIB)
    assert "memory_taken" not in ids(s.seen(processes=(own,)))


def test_an_idle_card_beside_the_one_in_use_is_no_finding() -> None:
    """Seen on a machine with two cards: the second one was idle because nobody used it."""
    window = s.watched(
        busy_pct={"GPU-1": 97.0, "GPU-2": 0.0},
        mem_busy_pct={"GPU-1": 80.0, "GPU-2": 0.0},
        throttle={"GPU-1": (), "GPU-2": ("hw_thermal",)},
    )
    two = s.only(s.gpu(), s.gpu(2, s.device("CUDA1"))).machine
    base = s.measured(s.trial(window=window))
    assert not ids(dataclasses.replace(base, machine=two)) & {"gpu_waits", "throttled"}


def test_a_small_model_on_a_large_card_has_not_overflowed() -> None:
    """Busy, with an idle memory controller, and most of the memory free: nothing spilled."""
    window = s.watched(
        busy_pct={"GPU-1": 99.0}, mem_busy_pct={"GPU-1": 2.0}, vram_peak_bytes={"GPU-1": GIB}
    )
    assert "spill_signature" not in ids(s.measured(s.trial(window=window)))


def test_a_device_on_this_computer_is_no_other_computer() -> None:
    """An RPC server behind a loopback address is not said to be somebody else's."""
    for endpoint in ("127.0.0.1:50052", "localhost:50052", "[::1]:50052"):
        own = s.device("RPC0", kind=GpuKind.REMOTE, endpoint=endpoint)
        assert "remote_device" not in ids(s.only(Gpu(key="rpc", engine=(own,))))


def test_nobody_is_told_to_switch_on_what_a_card_cannot_do() -> None:
    """NVIDIA's cards before Ampere have no Resizable BAR, and a cable carries none."""
    for fields in ({"compute_capability": "7.5"}, {"external": True}):
        assert "rebar_off" not in ids(s.only(s.gpu(resizable_bar=False, **fields)))
    assert "rebar_off" in ids(s.only(s.gpu(resizable_bar=False, compute_capability="8.6")))


def test_lanes_inside_a_laptop_are_no_loose_slot() -> None:
    """Its maker wired them: there is no slot or riser to check."""
    shown = s.seen(busy_pct=90.0, pcie_width=8)
    laptop = msgspec.structs.replace(shown.machine, host=s.host(is_laptop=True))
    assert "narrow_link" in ids(shown)
    assert "narrow_link" not in ids(dataclasses.replace(shown, machine=laptop))


def test_a_card_on_a_cable_has_no_loose_slot() -> None:
    """Behind Thunderbolt a link calls itself Gen 1, whatever the cable carries."""
    for laptop in (True, False):
        boxed = s.seen(s.gpu(external=True), busy_pct=97.0, pcie_gen=1, pcie_width=4)
        machine = msgspec.structs.replace(boxed.machine, host=s.host(is_laptop=laptop))
        found = ids(dataclasses.replace(boxed, machine=machine))
        assert "external_gpu" in found
        assert "narrow_link" not in found


def test_a_card_above_its_slowdown_temperature_is_not_less_than_nothing_away() -> None:
    """The margin that is told ends at 0."""
    hot = s.seen(temp_c=93.0, temp_margin_c=-3.0)
    found = next(f for f in findings(hot) if f.id == "near_slowdown")
    assert found.evidence["margin_c"] == 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_of_something_is_not_told_as_many(language: str) -> None:
    """Sentences with a count read right for one."""
    for section, code in (
        ("finding", "out_of_memory"), ("finding", "disturbed"), ("finding", "driver_resets"),
        ("finding", "mig_parent"), ("finding", "in_container"), ("reason", "disturbed"),
    ):  # fmt: skip
        for number in ("{count}", "{n_trials}", "{parts}", "{cores}"):
            text = catalogue(language)[section][code]
            assert f"{number} trials" not in text
            assert f"{number} reports" not in text
            assert f"{number} instances" not in text
            assert f"{number} processors" not in text


@pytest.mark.parametrize(
    ("shares", "fires"),
    [
        ({"sw_thermal": 30.0}, {"too_hot"}),
        ({"sw_thermal": 2.0}, set()),
        ({"sw_power_cap": 60.0}, {"at_power_limit"}),
        ({"sw_power_cap": 10.0}, set()),
        ({"hw_power_brake": 9.0}, {"power_brake"}),
    ],
)
def test_time_held_back_counts_although_no_reason_shows(
    shares: dict[str, float], fires: set[str]
) -> None:
    """Between two looks a card may be slowed down unseen; a blip is not worth a word."""
    found = ids(s.seen(limited_pct=shares, throttle=()))
    assert found & {"too_hot", "at_power_limit", "power_brake"} == fires
