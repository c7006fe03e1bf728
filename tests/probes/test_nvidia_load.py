"""Time held back and load per program: shares of real time, or a reason."""

from typing import Any

import pytest

from app.domain.machine import PowerState
from probes.nvidia_load import LimitedTime, Use, programs
from probes.reading import Absence, gpu_sample

SECOND = 1_000_000_000


class Counters:
    """NVML's counters of one card, by field id; older drivers' policies below."""

    def __init__(self, fields: dict[int, Any], policies: dict[int, Any] | None = None) -> None:
        self.fields, self.policies = fields, policies or {}
        self.n_asked = 0

    def __call__(self, function: str, *args: int) -> Any:
        self.n_asked += 1
        known = self.policies if function == "nvmlDeviceGetViolationStatus" else self.fields
        return known.get(args[0], Absence.NOT_SUPPORTED)


def test_share_of_time_comes_from_two_readings() -> None:
    """One reading of a counter says nothing, two say how much of the time lay between."""
    counters, limited = Counters({74: 0, 269: 0}), LimitedTime()
    limited.driver = "nvidia 580.95.05"
    assert limited.read(counters, 0) is Absence.NO_DATA
    counters.fields = {74: 3 * SECOND // 2, 269: SECOND // 5}
    assert limited.read(counters, 2 * SECOND) == {"sw_power_cap": 75.0, "sw_thermal": 10.0}


def test_share_is_carried_on_between_two_beats() -> None:
    """A trial reads five times a second; the counters are asked once."""
    counters, limited = Counters({74: 0}), LimitedTime()
    limited.read(counters, 0)
    counters.fields = {74: SECOND // 2}
    assert limited.read(counters, SECOND) == {"sw_power_cap": 50.0}
    n_asked = counters.n_asked
    assert limited.read(counters, SECOND + SECOND // 5) == {"sw_power_cap": 50.0}
    assert counters.n_asked == n_asked


@pytest.mark.parametrize("later", [5, 40 * SECOND, None])
def test_counter_that_cannot_be_true_gives_no_share(later: int | None) -> None:
    """Backwards (driver reloaded), faster than time, or gone: no figure, and it recovers."""
    counters, limited = Counters({74: 10}), LimitedTime()
    limited.read(counters, 0)
    counters.fields = {} if later is None else {74: later}
    assert isinstance(limited.read(counters, SECOND), Absence)
    counters.fields = {74: 40 * SECOND}
    limited.read(counters, 2 * SECOND)
    counters.fields = {74: 41 * SECOND}
    assert limited.read(counters, 3 * SECOND) == {"sw_power_cap": 100.0}


@pytest.mark.parametrize(
    ("driver", "told"),
    [("nvidia 580.82.07", True), ("nvidia 591.44", True), ("nvidia 580.65.06", False),
     ("nvidia 575.64", False), ("nvidia", False), (None, False)],
)  # fmt: skip
def test_fields_of_heat_count_where_they_mean_heat(driver: str | None, told: bool) -> None:
    """Before 580.82 those numbers belong to other readings: never a share made of them."""
    counters, limited = Counters({74: 0, 269: 0, 271: 0}), LimitedTime()
    limited.driver = driver
    limited.read(counters, 0)
    shares = limited.read(counters, SECOND)
    assert isinstance(shares, dict)
    assert ("sw_thermal" in shares, "hw_power_brake" in shares) == (told, told)


def test_older_drivers_are_asked_by_the_older_name() -> None:
    """Where the fields are unknown the violation counters serve."""
    counters, limited = Counters({}, {0: {"violationTime": 0, "referenceTime": 9}}), LimitedTime()
    limited.read(counters, 0)
    counters.policies = {0: {"violationTime": SECOND // 4, "referenceTime": 9}}
    assert limited.read(counters, SECOND) == {"sw_power_cap": 25.0}


def test_recording_makes_no_share_of_frozen_counters() -> None:
    """Time and counters stand still in a recording: not "never held back", but no figure."""
    counters, limited = Counters({74: 10 * SECOND}), LimitedTime()
    limited.read(counters, 0)
    assert limited.read(counters, 0) is Absence.NO_DATA


def test_impossible_shares_never_reach_a_sample() -> None:
    """A share above the whole, below zero or of no number is refused as a whole."""
    for share in (101.0, -1.0, float("nan"), "much"):
        values = {"limited_pct": {"sw_thermal": share, "sw_power_cap": 5.0}}
        sample = gpu_sample("k", 0, PowerState.AWAKE, values)
        assert sample.limited_pct is None
        assert sample.missing["limited_pct"] == "implausible"
        assert sample.limited_most_pct is None


def entry(pid: int, at_s: float, load: int) -> dict[str, int]:
    return {"pid": pid, "timeStamp": int(at_s * 1e6), "smUtil": load, "memUtil": 0}


def ask_of(loads: object, held: object = None) -> Any:
    answers = {
        "nvmlDeviceGetComputeRunningProcesses_v3": [{"pid": 7, "usedGpuMemory": 5}]
        if held is None
        else held,
        "nvmlDeviceGetProcessUtilization": loads,
    }
    return lambda function, *_args: answers.get(function, Absence.NOT_SUPPORTED)


def test_load_of_a_program_is_the_mean_of_its_newest_samples() -> None:
    """Old samples and sentinels do not count."""
    loads = [entry(7, 100, 90), entry(7, 130, 20), entry(7, 131, 40), entry(7, 131, 2**32 - 1)]
    assert programs(ask_of(loads)) == {7: Use(vram_bytes=5, busy_pct=30.0)}


@pytest.mark.parametrize("loads", [Absence.NO_DATA, Absence.NOT_SUPPORTED, [], ["odd", {}], None])
def test_program_without_samples_has_no_load(loads: object) -> None:
    """Nothing ran lately, or it is not told: the program stays, its load is unknown."""
    assert programs(ask_of(loads)) == {7: Use(vram_bytes=5, busy_pct=None)}


def test_list_that_is_not_told_has_a_reason() -> None:
    """WSL2 gives no list of programs."""
    assert programs(ask_of([], Absence.NO_PERMISSION)) is Absence.NO_PERMISSION
