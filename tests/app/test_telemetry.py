"""Telemetry: forced readings, windows, stalls, gaps; nothing sleeps and nothing is timed."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from app.domain.machine import GpuProcess, GpuSample, HostSample, PowerSource, PowerState
from app.telemetry import sampler
from app.telemetry.telemetry import Telemetry
from tests.fakes.probe import FakeGpuProbe, FakeHostProbe, gpu_sample

NEVER_S = 3600.0
MIB = 1 << 20


@contextmanager
def running(*probes: FakeGpuProbe, host: FakeHostProbe | None = None) -> Iterator[Telemetry]:
    """Telemetry that samples on demand only, and is stopped at the end."""
    telemetry = Telemetry(probes, host, interval_s=None)
    telemetry.start()
    try:
        yield telemetry
    finally:
        for probe in probes:
            if probe.hang is not None:
                probe.hang.set()
        assert telemetry.stop()


def test_every_probe_is_read_on_its_own_thread() -> None:
    """Two probes are read on two threads, neither of them the caller's."""
    one, two = FakeGpuProbe([gpu_sample("A")], "one"), FakeGpuProbe([gpu_sample("B")], "two")
    threads: list[int] = []
    for probe in (one, two):
        probe.on_sample = lambda: threads.append(threading.get_ident())
    with running(one, two) as telemetry:
        assert telemetry.sample_now()
    assert len({*threads, threading.get_ident()}) == 3


def test_stalled_probe_makes_only_itself_stale() -> None:
    """While one probe hangs, the other is read and a caller waits no longer than it asked for."""
    stuck, well = FakeGpuProbe([gpu_sample("A")], "stuck"), FakeGpuProbe([gpu_sample("B")], "well")
    stuck.stall()
    with running(stuck, well) as telemetry:
        assert not telemetry.sample_now(timeout_s=0.05)
        assert telemetry.sample_now(timeout_s=0.05) is False
        assert telemetry.latest("A") == ()
        assert [s.key for s in telemetry.latest("B")] == ["B"]


def test_failing_probe_does_not_end_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """An exception in one probe is logged; it and the others go on being read."""
    bad, good = FakeGpuProbe([gpu_sample("A")], "bad"), FakeGpuProbe([gpu_sample("B")], "good")
    bad.error = RuntimeError("driver gone")
    with running(bad, good) as telemetry:
        assert telemetry.sample_now()
        bad.error = None
        assert telemetry.sample_now()
        assert telemetry.latest("A")
    assert "driver gone" in caplog.text
    caplog.clear()


def test_stop_closes_probes_and_ends_threads() -> None:
    """After ``stop`` no sampling thread lives and every probe is closed."""
    probe = FakeGpuProbe([gpu_sample()])
    with running(probe) as telemetry:
        assert telemetry.sample_now()
    assert probe.closed
    assert not [t for t in threading.enumerate() if t.name.startswith("probe-")]


def test_stop_leaves_a_hanging_probe_behind() -> None:
    """``stop`` says so when a reading never returns, and does not close that probe."""
    probe = FakeGpuProbe([gpu_sample()])
    probe.stall()
    telemetry = Telemetry([probe], interval_s=NEVER_S)
    telemetry.start()
    assert probe.entered.wait(60)
    assert telemetry.stop(timeout_s=0.0) is False
    assert not probe.closed
    assert probe.hang is not None
    probe.hang.set()


def test_samples_run_on_a_schedule_without_being_asked() -> None:
    """With an interval the probe is read again and again."""
    probe, often = FakeGpuProbe([gpu_sample()]), threading.Event()
    probe.on_sample = lambda: often.set() if probe.n_samples >= 3 else None
    telemetry = Telemetry([probe], interval_s=0.001)
    telemetry.start()
    assert often.wait(60)
    assert telemetry.stop()


def test_window_forces_a_reading_at_both_ends() -> None:
    """Even a trial shorter than any interval has a first and a last reading."""
    probe = FakeGpuProbe([gpu_sample(vram_used_bytes=n * MIB) for n in (100, 300, 200)])
    with running(probe) as telemetry:
        with telemetry.window() as window:
            telemetry.sample_now()
        assert probe.trials == [True, False]
        assert window.reason is None
        assert window.result is not None
        assert window.result.n_samples >= 3
        assert window.result.vram_peak_bytes == {"GPU-1": 300 * MIB}


def test_window_of_a_hanging_probe_ends_with_a_reason() -> None:
    """A trial goes on while its probe hangs; the window then says that it saw too little."""
    probe = FakeGpuProbe([gpu_sample(busy_pct=1.0)])
    probe.stall()
    with running(probe) as telemetry, telemetry.window() as window:
        pass
    assert window.result is None
    assert window.reason == "no_probe"


def test_sleeping_gpu_gives_no_window() -> None:
    """Readings that only say "asleep" are no readings of a trial."""
    asleep = gpu_sample(power_state=PowerState.ASLEEP)
    with running(FakeGpuProbe([asleep])) as telemetry:
        with telemetry.window() as window:
            telemetry.sample_now()
        assert window.reason == "too_few_samples"


def test_window_names_the_other_process() -> None:
    """Growth of a program that is not the engine's makes the window not count."""

    def held(mine: int, other: int) -> GpuSample:
        processes = (
            GpuProcess(pid=7, vram_bytes=mine * MIB),
            GpuProcess(pid=8, vram_bytes=other * MIB),
        )
        return gpu_sample(busy_pct=50.0, processes=processes)

    for own_pids, other_mib, disturbed in (
        ({7}, 500, "other_process"),
        ({7}, 110, None),
        ({7, 8}, 500, None),
        ({99}, 500, None),
    ):
        probe = FakeGpuProbe([held(100, 100), held(900, 100), held(900, other_mib)])
        with running(probe) as telemetry, telemetry.window(own_pids) as window:
            telemetry.sample_now()
        assert window.result is not None
        assert window.result.disturbed == disturbed, own_pids


def test_window_sees_the_plug_being_pulled() -> None:
    """A change of the power source during a trial makes it not count."""
    host = FakeHostProbe(PowerSource.AC, PowerSource.BATTERY)
    probe = FakeGpuProbe([gpu_sample(busy_pct=50.0)])
    with running(probe, host=host) as telemetry, telemetry.window() as window:
        telemetry.sample_now()
    assert window.result is not None
    assert window.result.disturbed == "power_source_changed"


def test_probe_rests_again_after_readings_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was asked now and then, and is asked no more, must not keep a laptop's card awake."""
    monkeypatch.setattr(sampler, "REST_AFTER_S", 0.01)
    probe = FakeGpuProbe([gpu_sample()])
    with running(probe) as telemetry:
        assert probe.rested.wait(10)
        for _ in range(2):
            probe.rested.clear()
            assert telemetry.sample_now()
            assert probe.rested.wait(10)


def test_pause_lets_the_probe_rest() -> None:
    """When nobody looks, devices are let go: at the start, after a trial, and on a pause."""
    probe = FakeGpuProbe([gpu_sample()])
    with running(probe) as telemetry:
        assert probe.rested.wait(60)
        probe.rested.clear()
        with telemetry.window():
            pass
        assert probe.rested.wait(60)
        telemetry.set_interval(NEVER_S)
        probe.rested.clear()
        telemetry.set_interval(None)
        assert probe.rested.wait(60)


def test_our_own_processes_do_not_disturb() -> None:
    """Memory that this process (or what it started) takes belongs to the trial."""

    def held(mib: int) -> GpuSample:
        process = GpuProcess(pid=os.getpid(), vram_bytes=mib * MIB)
        return gpu_sample(busy_pct=50.0, processes=(process,))

    probe = FakeGpuProbe([held(100), held(900)])
    with running(probe) as telemetry, telemetry.window() as window:
        telemetry.sample_now()
    assert window.result is not None
    assert window.result.disturbed is None


def test_subscriber_that_fails_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A broken surface does not stop the sampling; an ended subscription hears nothing more."""
    heard: list[str] = []

    def broken(key: str, sample: GpuSample | HostSample) -> None:
        heard.append(key)
        raise ValueError("window closed")

    with running(FakeGpuProbe([gpu_sample("A")])) as telemetry:
        end = telemetry.subscribe(broken)
        assert telemetry.sample_now()
        end()
        end()
        assert telemetry.sample_now()
    assert heard == ["A"]
    assert "subscriber failed" in caplog.text
    caplog.clear()


def test_series_joins_names_and_prefers_the_first_probe_that_knows() -> None:
    """Two probes of one card are one line per quantity, from the probe that has the value."""
    fine = FakeGpuProbe([gpu_sample("GPU-9", busy_pct=80.0)], "nvml")
    rough = FakeGpuProbe([gpu_sample("0000:01:00.0", busy_pct=1.0, fan_pct=30.0)], "drm")
    names = {"GPU-9": "card", "0000:01:00.0": "card"}
    telemetry = Telemetry([fine, rough], names=names, interval_s=None)
    telemetry.start()
    assert telemetry.sample_now()
    assert telemetry.keys() == ("card",)
    busy, fan = telemetry.series("card", "busy_pct"), telemetry.series("card", "fan_pct")
    assert busy is not None
    assert list(busy.values) == [80.0]
    assert fan is not None
    assert list(fan.values) == [30.0]
    assert telemetry.series("card", "temp_c") is None
    assert telemetry.stop()


def test_old_sample_is_stale() -> None:
    """A reading from long ago is told from one of now."""
    telemetry = Telemetry([], interval_s=1.0)
    old = gpu_sample(t_ns=time.perf_counter_ns() - 10_000_000_000)
    assert telemetry.is_stale(old)
    assert not telemetry.is_stale(gpu_sample())


def test_a_hanging_reading_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one call of a driver hangs, no later question waits for it again."""
    probe = FakeGpuProbe([gpu_sample("A")], "stuck")
    probe.stall()
    asked: list[float | None] = []
    with running(probe) as telemetry:
        assert not telemetry.sample_now(timeout_s=0.05)
        assert probe.entered.wait(60)
        sampler = telemetry._samplers["stuck"]
        assert sampler._reading_since_s is not None
        sampler._reading_since_s -= 1.0  # however late a busy machine began it
        wait_for = sampler._ready.wait_for

        def noted(predicate: Callable[[], bool], timeout: float | None = None) -> bool:
            asked.append(timeout)
            return wait_for(predicate, timeout)

        monkeypatch.setattr(sampler._ready, "wait_for", noted)
        assert not telemetry.sample_now(timeout_s=0.05)
    assert asked == [0.0]
