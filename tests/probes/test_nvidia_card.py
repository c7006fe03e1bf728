"""One NVIDIA card: second names of calls, modes, fans, and a card that leaves the bus."""

import pytest

from probes.reading import Absence
from tests.fakes.nvidia import ANSWERS, SECOND, card, only, probe_of
from tests.fakes.probe import FakeNvml, FakeTree


def test_fastest_fan_counts_and_older_drivers_have_one() -> None:
    """Of several fans the one that is heard; without their number the call for all of them."""
    two = ANSWERS | {
        "nvmlDeviceGetNumFans": 2,
        "nvmlDeviceGetFanSpeed_v2": lambda fan, _device: (30, 55)[fan],
        "nvmlDeviceGetFanSpeedRPM": 1450,
    }
    probe = probe_of(card(), FakeNvml(two))
    assert probe.identify()[0].n_fans == 2
    sample = only(probe.sample())
    assert (sample.fan_pct, sample.fan_rpm) == (55.0, 1450.0)
    early = probe_of(card(), FakeNvml(two | {"nvmlDeviceGetFanSpeed": 41}))
    assert only(early.sample()).fan_pct == 41.0
    early.identify()
    assert only(early.sample()).fan_pct == 55.0
    one = only(probe_of(card(), FakeNvml(ANSWERS | {"nvmlDeviceGetFanSpeed": 41})).sample())
    assert (one.fan_pct, one.missing["fan_rpm"]) == (41.0, "not_supported")


@pytest.mark.parametrize(("speed", "generation"), [(16_000, 4), (64_000, 6), (7, None)])
def test_generation_of_the_link_by_its_speed(speed: int, generation: int | None) -> None:
    """A driver without the older call tells the speed; a speed of no generation is none."""
    answers = ANSWERS | {"nvmlDeviceGetPcieSpeed": speed}
    assert only(probe_of(card(), FakeNvml(answers)).sample()).pcie_gen == generation


def test_power_and_energy_by_their_field_numbers() -> None:
    """Where the calls are gone the field of the same reading serves."""
    fields = {186: 12_500, 191: 7_000}
    answers = {
        name: answer for name, answer in ANSWERS.items() if name != "nvmlDeviceGetPowerUsage"
    } | {"nvmlDeviceGetFieldValues": lambda field, _device: fields.get(field, Absence.NO_DATA)}
    sample = only(probe_of(card(), FakeNvml(answers)).sample())
    assert (sample.power_w, sample.energy_j) == (12.5, 7.0)


@pytest.mark.parametrize(
    ("answer", "mode"), [({"currentMode": 1}, "maximum"), ({"currentMode": 9}, None), (2, None)]
)
def test_power_management_mode_has_a_name(answer: object, mode: str | None) -> None:
    """Only the modes that the driver documents."""
    answers = ANSWERS | {"nvmlDeviceGetPowerMizerMode_v1": answer}
    assert only(probe_of(card(), FakeNvml(answers)).sample()).power_mizer == mode


def test_persistence_is_not_believed_where_it_always_says_on() -> None:
    """On the bus it is read; where NVML alone lists cards (Windows, WSL2) it means nothing."""
    answers = ANSWERS | {"nvmlDeviceGetPersistenceMode": 1, "nvmlDeviceGetMaxClockInfo": 2100}
    known = probe_of(card(), FakeNvml(answers)).identify()[0]
    assert (known.persistence, known.clock_max_mhz) == (True, 2100.0)
    unseen = probe_of(FakeTree({}), FakeNvml(answers)).identify()[0]
    assert (unseen.persistence, unseen.missing["persistence"]) == (None, "not_applicable")


def test_time_held_back_is_read_once_a_second() -> None:
    """The counters become a share of the time since the reading before."""
    fields = {74: 0}
    answers = ANSWERS | {
        "nvmlDeviceGetFieldValues": lambda field, _device: fields.get(field, Absence.NOT_SUPPORTED)
    }
    tree = card(control="on")
    probe = probe_of(tree, FakeNvml(answers))
    assert only(probe.sample()).missing["limited_pct"] == "no_data"
    fields[74] = SECOND // 2
    tree.now_ns = SECOND
    sample = only(probe.sample())
    assert sample.limited_pct == {"sw_power_cap": 50.0}
    assert sample.limited_most_pct == 50.0


def test_unplugged_card_is_lost_and_not_listed_again() -> None:
    """A card that leaves the bus between two readings is gone; back on it, it is read again."""
    tree, nvml = card(), FakeNvml(ANSWERS)
    probe = probe_of(tree, nvml)
    key = probe.identify()[0].key
    assert only(probe.sample()).busy_pct == 0
    files, tree.files = tree.files, {}
    n_asked = len(nvml.asked)
    sample = only(probe.sample())
    assert (sample.key, sample.missing["busy_pct"]) == (key, "lost")
    assert len(nvml.asked) == n_asked
    assert probe.identify() == ()
    tree.files = files
    assert [info.key for info in probe.identify()] == [key]
    assert only(probe.sample()).busy_pct == 0


@pytest.mark.parametrize(
    ("answer", "count", "reason"),
    [(3, 3, None), (0, 0, None), (-1, None, "implausible"), (2**64 - 1, None, "implausible")],
)
def test_memory_errors_are_counted(answer: int, count: int | None, reason: str | None) -> None:
    """Errors that could not be corrected; a sentinel is no number of errors."""
    answers = ANSWERS | {"nvmlDeviceGetTotalEccErrors": answer}
    sample = only(probe_of(card(), FakeNvml(answers)).sample())
    assert (sample.memory_errors, sample.missing.get("memory_errors")) == (count, reason)


@pytest.mark.parametrize("reason", [Absence.NO_POWER, Absence.DAMAGED])
def test_card_that_refuses_says_why(reason: Absence) -> None:
    """A card without its power plug is listed, by what the bus tells, with the reason."""
    probe = probe_of(card(), FakeNvml(dict.fromkeys(ANSWERS, reason)))
    (info,) = probe.identify()
    assert info.missing["vram_total_bytes"] == reason.value


@pytest.mark.parametrize(
    ("states", "count"),
    [((1, 1, 0), 2), ((0, 0), 0), ((), None), ((1,) * 40, 36)],
)
def test_links_to_other_cards_are_counted(states: tuple[int, ...], count: int | None) -> None:
    """Those that are up, as far as the card has links; never more than the library knows."""

    def state(link: int, _device: str) -> object:
        return states[link] if link < len(states) else Absence.NOT_SUPPORTED

    answers = ANSWERS | {"nvmlDeviceGetNvLinkState": state}
    assert probe_of(card(), FakeNvml(answers)).identify()[0].n_nvlinks == count
