"""The NVIDIA probe: sleeping cards, tiers, loss, release; against a scripted NVML."""

from typing import Any

import pytest

from app.domain.machine import PowerState, ProbeUnavailable
from app.telemetry.telemetry import Restful, TrialAware
from probes.nvidia import IDLE_SAMPLES, SLEEP_SAMPLES, NvidiaProbe
from probes.reading import Absence
from tests.fakes.nvidia import ANSWERS, BUS, SECOND, Clock, card, only, probe_of
from tests.fakes.probe import FakeNvml, FakeTree


def test_sleeping_card_is_never_touched() -> None:
    """Not one NVML call, not even its start, while the kernel says suspended."""
    for status in ("suspended", "suspending", "resuming"):
        nvml = FakeNvml(ANSWERS)
        probe = probe_of(card(status), nvml)
        assert probe.identify()[0].drives_display is False
        sample = only(probe.sample())
        assert sample.power_state is PowerState.ASLEEP
        assert set(sample.missing.values()) == {"asleep"}
        assert (nvml.started, nvml.asked) == (0, [])


def test_card_keeps_its_key_when_it_falls_asleep() -> None:
    """A card that was identified awake is the same GPU while it sleeps."""
    tree, nvml = card(), FakeNvml(ANSWERS)
    probe = probe_of(tree, nvml)
    awake = probe.identify()[0]
    tree.files[f"{BUS}/0000:01:00.0/power/runtime_status"] = "suspended"
    asleep = probe.identify()[0]
    assert asleep.key == awake.key == ANSWERS["nvmlDeviceGetUUID"]
    assert only(probe.sample()).key == awake.key


def test_one_unsupported_call_hides_no_other_field() -> None:
    """The reading has what NVML gives and a reason for the rest, in our units."""
    sample = only(probe_of(card(), FakeNvml(ANSWERS)).sample())
    assert sample.power_w == pytest.approx(3.5)
    assert sample.temp_c is None
    assert sample.missing["temp_c"] == "not_supported"


def test_unsupported_call_is_asked_once() -> None:
    """A call the driver never supports is not repeated every second."""
    nvml = FakeNvml(ANSWERS)
    probe = probe_of(card(), nvml)
    probe.sample()
    probe.sample()
    assert nvml.asked.count("nvmlDeviceGetEnforcedPowerLimit") == 1
    assert nvml.asked.count("nvmlDeviceGetPowerUsage") == 2


def test_costly_readings_are_rare() -> None:
    """Process lists come every ten seconds, and are carried on between."""
    nvml, clock = FakeNvml(ANSWERS), Clock()
    probe = probe_of(card(control="on"), nvml, clock)
    for _ in range(20):
        sample = only(probe.sample())
        clock.now_ns += SECOND
    assert nvml.asked.count("nvmlDeviceGetComputeRunningProcesses_v3") == 2
    assert sample.processes is not None
    assert sample.processes[0].name == "program7"


def test_pcie_traffic_is_measured_inside_trials_only() -> None:
    """The 20 ms call is made at most once a second, and only while a trial runs."""
    nvml, clock = FakeNvml(ANSWERS), Clock()
    probe = probe_of(card(), nvml, clock)
    probe.sample()
    assert "nvmlDeviceGetPcieThroughput" not in nvml.asked
    probe.set_trial(active=True)
    assert only(probe.sample()).pcie_rx_bytes_s == 251_000
    clock.now_ns += SECOND // 5
    assert only(probe.sample()).pcie_rx_bytes_s is None
    assert nvml.asked.count("nvmlDeviceGetPcieThroughput") == 2


def test_idle_card_that_may_sleep_is_released() -> None:
    """Handles are let go after idling, taken again when the card does not sleep."""
    nvml = FakeNvml(ANSWERS)
    probe = probe_of(card(), nvml)
    for _ in range(IDLE_SAMPLES):
        probe.sample()
    assert nvml.stopped == 1
    assert only(probe.sample()).missing["busy_pct"] == "released"
    for _ in range(SLEEP_SAMPLES):
        probe.sample()
    assert only(probe.sample()).busy_pct == 0
    for _ in range(IDLE_SAMPLES * 2):
        probe.sample()
    assert nvml.stopped == 1


def test_card_is_held_where_release_would_be_pointless() -> None:
    """A pinned card, one that drives a display, and one in a trial are never released."""
    for control, display, trial in (("on", 0, False), ("auto", 1, False), ("auto", 0, True)):
        nvml = FakeNvml({**ANSWERS, "nvmlDeviceGetDisplayActive": display})
        probe = probe_of(card(control=control), nvml)
        probe.identify()
        probe.set_trial(active=trial)
        for _ in range(IDLE_SAMPLES * 3):
            probe.sample()
        assert nvml.stopped == 0, (control, display, trial)


def test_rest_releases_only_what_could_sleep() -> None:
    """Paused readings let a laptop's card sleep; a pinned card keeps its handles."""
    for control, stopped in (("auto", 1), ("on", 0)):
        nvml = FakeNvml(ANSWERS)
        probe = probe_of(card(control=control), nvml)
        probe.sample()
        probe.rest()
        assert nvml.stopped == stopped
        assert only(probe.sample()).busy_pct == 0


def test_lost_device_is_left_alone_for_a_while() -> None:
    """After "GPU is lost" nothing is asked for half a minute; then it is tried again."""
    nvml, clock = FakeNvml(ANSWERS), Clock()
    probe = probe_of(card(control="on"), nvml, clock)
    nvml.answers = dict.fromkeys(ANSWERS, Absence.LOST)
    assert only(probe.sample()).missing["power_w"] == "lost"
    n_asked = len(nvml.asked)
    assert only(probe.sample()).missing["power_w"] == "lost"
    assert len(nvml.asked) == n_asked
    nvml.answers = ANSWERS
    clock.now_ns += 31 * SECOND
    assert only(probe.sample()).power_w == pytest.approx(3.5)


def test_driver_reload_is_survived() -> None:
    """When the driver goes away NVML is shut down, and started again after a pause."""
    nvml, clock = FakeNvml(ANSWERS), Clock()
    probe = probe_of(card(control="on"), nvml, clock)
    probe.sample()
    nvml.answers = dict.fromkeys(ANSWERS, Absence.DRIVER_NOT_LOADED)
    assert only(probe.sample()).missing["busy_pct"] == "driver_not_loaded"
    assert nvml.stopped == 1
    assert only(probe.sample()).missing["busy_pct"] == "driver_not_loaded"
    assert nvml.started == 1
    nvml.answers = ANSWERS
    clock.now_ns += 31 * SECOND
    assert only(probe.sample()).busy_pct == 0
    assert nvml.started == 2


def test_no_nvidia_hardware_is_a_normal_state() -> None:
    """Without card and library the probe is unavailable, with the reason."""
    nvml = FakeNvml()
    nvml.problem = Absence.LIB_MISSING
    with pytest.raises(ProbeUnavailable, match="lib_missing"):
        probe_of(FakeTree({}), nvml)


def test_library_without_devices_is_shut_down_again() -> None:
    """NVML that counts no device is released, and the probe is unavailable."""
    nvml = FakeNvml({"nvmlDeviceGetCount": 0})
    with pytest.raises(ProbeUnavailable):
        probe_of(FakeTree({}), nvml)
    assert nvml.stopped == 1


def test_cards_of_other_containers_are_not_listed() -> None:
    """A card on the bus that NVML does not know is none of ours."""
    refused = dict.fromkeys(("nvmlDeviceGetName", "nvmlDeviceGetUUID"), Absence.NO_DATA)
    probe = probe_of(card(), FakeNvml({**ANSWERS, **refused}))
    assert probe.identify() == ()
    assert probe.sample() == ()


def test_memory_version_1_serves_old_drivers() -> None:
    """Where the second version of the memory call is unknown, the first is used."""

    def memory(*args: object) -> object:
        version_2 = len(args) == 2
        return Absence.SYMBOL_MISSING if version_2 else {"total": 100, "used": 40, "free": 60}

    nvml = FakeNvml({**ANSWERS, "nvmlDeviceGetMemoryInfo": memory})
    probe = probe_of(card(), nvml)
    assert probe.identify()[0].vram_total_bytes == 100
    assert only(probe.sample()).vram_free_bytes == 60


def test_no_setting_call_is_named() -> None:
    """The probe names reading calls only; setting belongs to the power helper."""
    nvml = FakeNvml(ANSWERS)
    probe = probe_of(card(), nvml)
    probe.identify()
    probe.set_trial(active=True)
    probe.sample()
    assert nvml.asked
    assert not [name for name in nvml.asked if "Set" in name or "Reset" in name]


def test_probe_takes_part_in_trials_and_pauses() -> None:
    """Telemetry recognises what the probe offers by these protocols."""
    probe = probe_of(card(), FakeNvml(ANSWERS))
    assert isinstance(probe, TrialAware)
    assert isinstance(probe, Restful)


def test_card_whose_sleep_is_not_seen_is_let_go_for_good() -> None:
    """On Windows an idle laptop card stays released until a trial needs it."""
    nvml = FakeNvml(ANSWERS)
    probe = NvidiaProbe(FakeTree({}), nvml, lambda _pid: None, Clock(), sleep_unseen=True)
    probe.identify()
    for _ in range(IDLE_SAMPLES + 3 * SLEEP_SAMPLES):
        sample = only(probe.sample())
    assert sample.missing["busy_pct"] == "released"
    assert nvml.stopped == 1
    probe.set_trial(active=True)
    assert only(probe.sample()).busy_pct == 0


def test_desktop_card_is_held_where_sleep_is_not_seen() -> None:
    """Only laptop parts are let go; a desktop's card does not sleep."""
    nvml = FakeNvml(ANSWERS | {"nvmlDeviceGetName": "NVIDIA GeForce RTX 4080"})
    probe = NvidiaProbe(FakeTree({}), nvml, lambda _pid: None, Clock(), sleep_unseen=True)
    probe.identify()
    for _ in range(IDLE_SAMPLES + SLEEP_SAMPLES):
        probe.sample()
    assert nvml.stopped == 0


def mig_answers() -> dict[str, Any]:
    """A card split into one instance; the second slot is empty."""

    def of(whole: Any, part: Any) -> Any:
        def answer(*args: Any) -> Any:
            device = str(args[-1])
            if device.startswith("mig:1:"):
                return Absence.NO_DATA
            return part if device.startswith("mig:0:") else whole

        return answer

    return {
        "nvmlDeviceGetName": of("NVIDIA A100", "NVIDIA A100 MIG 3g.40gb"),
        "nvmlDeviceGetUUID": of("GPU-1", "MIG-1"),
        "nvmlDeviceGetMigMode": of([1, 1], Absence.NOT_SUPPORTED),
        "nvmlDeviceGetMaxMigDeviceCount": of(2, Absence.NOT_SUPPORTED),
        "nvmlDeviceGetMemoryInfo": of(
            Absence.NO_PERMISSION, {"total": 40 << 30, "used": 1 << 30, "free": 39 << 30}
        ),
        "nvmlDeviceGetPowerManagementLimit": of(400_000, Absence.NOT_SUPPORTED),
        "nvmlDeviceGetPowerManagementLimitConstraints": of([100_000, 400_000], None),
    }


def test_parts_of_a_split_card_are_found() -> None:
    """Parent and instance are two entries; neither offers power control."""
    probe = probe_of(card(), FakeNvml(mig_answers()))
    parent, part = probe.identify()
    assert (parent.mig, part.mig) == ("parent", "instance")
    assert (parent.uuid, part.uuid) == ("GPU-1", "MIG-1")
    assert (parent.power_limit_settable, part.power_limit_settable) == (False, False)
    assert (parent.vram_total_bytes, part.vram_total_bytes) == (None, 40 << 30)
    samples = {sample.key: sample for sample in probe.sample()}
    assert samples["MIG-1"].vram_free_bytes == 39 << 30
    assert samples["MIG-1"].busy_pct is None
    assert len(probe.identify()) == 2


@pytest.mark.parametrize(
    ("bar", "total", "on"),
    [
        (256 << 20, 8 << 30, False),
        (8 << 30, (8 << 30) - (5 << 20), True),
        (32 << 30, 24 << 30, True),
    ],
)
def test_resizable_bar_by_the_window_onto_memory(bar: int, total: int, on: bool) -> None:
    """A window as large as the memory is on, 256 MiB is off."""
    answers = ANSWERS | {
        "nvmlDeviceGetBAR1MemoryInfo": {"bar1Total": bar},
        "nvmlDeviceGetMemoryInfo": {"total": total, "used": 0, "free": total},
    }
    info = probe_of(card(), FakeNvml(answers)).identify()[0]
    assert (info.resizable_bar, info.bar_bytes) == (on, bar)
    assert info.vram_total_bytes == total


def test_window_onto_memory_is_never_added_to_it() -> None:
    """A tool showed 55 GiB for a 24 GiB card by adding the two."""
    answers = ANSWERS | {
        "nvmlDeviceGetBAR1MemoryInfo": {"bar1Total": 32 << 30},
        "nvmlDeviceGetMemoryInfo": {"total": 24 << 30, "used": 1 << 30, "free": 23 << 30},
    }
    probe = probe_of(card(), FakeNvml(answers))
    assert probe.identify()[0].vram_total_bytes == 24 << 30
    assert only(probe.sample()).vram_used_bytes == 1 << 30


def test_driver_models_capability_and_margin() -> None:
    """Lists of numbers become words; energy and margin come in our units."""
    answers = ANSWERS | {
        "nvmlDeviceGetDriverModel_v2": [1, 0],
        "nvmlDeviceGetCudaComputeCapability": [8, 9],
        "nvmlDeviceGetMarginTemperature": 12,
        "nvmlDeviceGetTotalEnergyConsumption": 5_000_000,
        "nvmlDeviceGetUtilizationRates": {"gpu": 50, "memory": 5},
    }
    probe = probe_of(card(), FakeNvml(answers))
    info, sample = probe.identify()[0], only(probe.sample())
    assert (info.driver_model, info.compute_capability) == ("tcc", "8.9")
    assert (sample.temp_margin_c, sample.energy_j) == (12.0, 5000.0)
