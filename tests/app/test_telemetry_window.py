"""What a window says, from lists of samples."""

from app.domain.machine import GpuSample
from app.telemetry.window import summarise
from tests.fakes.probe import gpu_sample


def seen(*samples: GpuSample) -> dict[str, list[GpuSample]]:
    return {"GPU-1": list(samples)}


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
    result, _ = summarise({"A": alive, "B": lost}, [], ())
    assert result is not None
    assert list(result.busy_pct) == ["A"]
