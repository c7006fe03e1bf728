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
