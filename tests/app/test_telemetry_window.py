"""What a window says, from lists of samples."""

from app.domain.machine import GpuProcess, GpuSample, HostSample, PowerSource
from app.telemetry.window import Sources, Window, summarise
from tests.fakes.probe import gpu_sample


def seen(*samples: GpuSample) -> dict[str, Sources]:
    return {"GPU-1": {"nvml": list(samples)}}


def test_fewer_than_three_readings_say_nothing() -> None:
    """Two readings give no medians, only the reason."""
    two = [gpu_sample(busy_pct=50.0), gpu_sample(busy_pct=60.0)]
    assert summarise(seen(*two), [], ()) == (None, "too_few_samples")
    assert summarise({}, [], ()) == (None, "no_probe")


def test_growth_counts_from_the_first_reading() -> None:
    """Shared memory that was in use before the trial is not the trial's growth."""
    used = (500, 700, 900, 600)
    result, _ = summarise(
        seen(*(gpu_sample(shared_used_bytes=n, temp_c=1.0) for n in used)), [], ()
    )
    assert result is not None
    assert result.shared_growth_bytes == {"GPU-1": 400}


def test_what_an_earlier_engine_gives_back_hides_no_growth() -> None:
    """A worker that ends inside the window frees its memory: the new one's is seen whole."""
    used = (6000, 6000, 600, 600, 5600)
    samples = [gpu_sample(vram_used_bytes=n, shared_used_bytes=n) for n in used]
    result, _ = summarise(seen(*samples), [], ())
    assert result is not None
    assert result.vram_growth_bytes == {"GPU-1": 5000}
    assert result.shared_growth_bytes == {"GPU-1": 5000}
    assert result.vram_peak_bytes == {"GPU-1": 6000}


def test_a_load_does_not_water_down_the_measured_part() -> None:
    """Idle readings while weights were read change neither busy time nor draw nor heat."""
    load = [gpu_sample(t_ns=n, busy_pct=0.0, power_w=20.0, temp_c=88.0) for n in range(5)]
    timed = [gpu_sample(t_ns=n, busy_pct=97.0, power_w=90.0, temp_c=60.0) for n in (10, 11, 12)]
    result, _ = summarise(seen(*load, *timed), [], (), since_ns=10)
    assert result is not None
    assert result.busy_pct == {"GPU-1": 97.0}
    assert result.power_w == {"GPU-1": 90.0}
    assert result.temp_max_c == {"GPU-1": 60.0}
    assert result.n_samples == 8


def test_too_short_a_measured_part_has_no_figures() -> None:
    """Two readings after the load give no median, and those before it give none either."""
    samples = [gpu_sample(t_ns=n, busy_pct=1.0, vram_used_bytes=n) for n in range(5)]
    result, _ = summarise(seen(*samples), [], (), since_ns=3)
    assert result is not None
    assert result.busy_pct == {}
    assert result.vram_growth_bytes == {"GPU-1": 4}


def test_energy_is_the_counters_difference() -> None:
    """First and last reading of the counter, with the time between them."""
    second = 1_000_000_000
    counted = [(0, 500.0), (second, None), (3 * second, 770.0)]
    samples = [gpu_sample(t_ns=t, energy_j=j, power_w=1.0) for t, j in counted]
    result, _ = summarise(seen(*samples), [], ())
    assert result is not None
    assert result.energy_j == {"GPU-1": 270.0}
    assert result.energy_s == {"GPU-1": 3.0}


def test_a_counter_that_started_anew_gives_no_energy() -> None:
    """A driver that was reloaded counts from zero, and a moment says nothing."""
    second = 1_000_000_000
    for counted in ([(0, 500.0), (2 * second, 3.0)], [(0, 5.0), (second // 2, 9.0)]):
        samples = [gpu_sample(t_ns=t, energy_j=j, power_w=1.0) for t, j in counted]
        result, _ = summarise(seen(*samples, gpu_sample(power_w=1.0)), [], ())
        assert result is not None
        assert result.energy_j == {}


def test_missing_readings_are_left_out_not_counted_as_zero() -> None:
    """Gaps inside a window change no median and no maximum."""
    busy = (90.0, None, 92.0, None, 94.0)
    samples = [gpu_sample(busy_pct=b, vram_used_bytes=5, power_w=100.0) for b in busy]
    result, _ = summarise(seen(*samples), [], ())
    assert result is not None
    assert result.busy_pct == {"GPU-1": 92.0}
    assert result.temp_max_c == {}
    assert result.shared_growth_bytes == {}
    assert result.throttle == {}


def test_throttle_reasons_are_gathered() -> None:
    """Every reason seen once is named; "none" is told from "unknown"."""
    reasons: tuple[tuple[str, ...] | None, ...] = ((), ("sw_power_cap",), None, ("hw_thermal",))
    result, _ = summarise(seen(*(gpu_sample(busy_pct=1.0, throttle=r) for r in reasons)), [], ())
    assert result is not None
    assert result.throttle == {"GPU-1": ("hw_thermal", "sw_power_cap")}


def test_device_that_was_lost_leaves_the_others() -> None:
    """One lost GPU does not take the readings of another with it."""
    alive = [gpu_sample("A", busy_pct=1.0) for _ in range(3)]
    lost = [gpu_sample("B", missing={"busy_pct": "lost"}) for _ in range(3)]
    result, _ = summarise({"A": {"nvml": alive}, "B": {"nvml": lost}}, [], ())
    assert result is not None
    assert list(result.busy_pct) == ["A"]


def test_two_probes_of_one_gpu_are_never_mixed() -> None:
    """Each figure comes from the best probe that has it; another fills what it lacks."""
    nvml = [gpu_sample(busy_pct=90.0, vram_used_bytes=b) for b in (100, 100, 100)]
    windows = [
        gpu_sample(busy_pct=10.0, vram_used_bytes=b, shared_used_bytes=s)
        for b, s in ((900, 5), (900, 5), (999, 80))
    ]
    result, _ = summarise({"GPU-1": {"nvml": nvml, "windows": windows}}, [], ())
    assert result is not None
    assert result.busy_pct == {"GPU-1": 90.0}
    assert result.vram_peak_bytes == {"GPU-1": 100}
    assert result.vram_growth_bytes == {"GPU-1": 0}
    assert result.shared_growth_bytes == {"GPU-1": 75}


def test_process_lists_without_sizes_show_no_growth() -> None:
    """Windows' NVML lists programs without sizes: a list with sizes later is no growth."""
    blank = (GpuProcess(pid=5),)
    full = (GpuProcess(pid=5, vram_bytes=4 << 30),)
    samples = [gpu_sample(busy_pct=1.0, processes=p) for p in (blank, blank, full)]
    result, _ = summarise(seen(*samples), [], (1,))
    assert result is not None
    assert result.disturbed is None


def test_order_of_probes_decides_not_order_of_arrival() -> None:
    """The window asks the more precise probe first, whoever answered first."""
    window = Window()
    for _ in range(3):
        window.add("GPU-1", gpu_sample(busy_pct=10.0), "windows")
        window.add("GPU-1", gpu_sample(busy_pct=90.0), "nvml")
    window.close(("nvml", "windows"))
    assert window.result is not None
    assert window.result.busy_pct == {"GPU-1": 90.0}


def test_unplugging_disturbs_a_trial_without_a_gpu() -> None:
    """On a machine without a GPU the change of the power source is still told."""
    host = [HostSample(t_ns=i, power_source=p) for i, p in enumerate((PowerSource.AC,) * 2)]
    assert summarise({}, host, ()) == (None, "no_probe")
    host.append(HostSample(t_ns=9, power_source=PowerSource.BATTERY))
    result, _ = summarise({}, host, ())
    assert result is not None
    assert result.disturbed == "power_source_changed"


def test_another_power_mode_disturbs_a_trial() -> None:
    """Battery saver or performance on the same plug: such speeds do not compare either."""
    modes = (None, "balanced", "balanced")
    host = [
        HostSample(t_ns=i, power_source=PowerSource.AC, power_mode=mode)
        for i, mode in enumerate(modes)
    ]
    assert summarise({}, host, ()) == (None, "no_probe")  # once it was not read: no change
    host.append(HostSample(t_ns=9, power_source=PowerSource.AC, power_mode="saver"))
    result, _ = summarise({}, host, ())
    assert result is not None
    assert result.disturbed == "power_mode_changed"
