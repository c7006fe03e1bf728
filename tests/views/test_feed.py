"""Live readings: joined, thinned, and silent while nobody looks."""

from array import array

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.domain.machine import GpuSample, PowerState
from tests.fakes import window_data as data
from tests.fakes.session import FakeTelemetry, Series
from views.feed import MAX_POINTS, TelemetryFeed, merged, recent


def test_two_probes_make_one_reading() -> None:
    """What the first probe does not know must come from the second, reasons included."""
    first = GpuSample(key="k", t_ns=2, temp_c=60.0, missing={"power_w": "not supported"})
    second = GpuSample(
        key="k", t_ns=1, power_state=PowerState.AWAKE, temp_c=99.0, power_w=80.0,
        missing={"fan_pct": "no fan"},
    )  # fmt: skip
    both = merged([first, second])
    assert both is not None
    assert (both.temp_c, both.power_w, both.power_state) == (60.0, 80.0, PowerState.AWAKE)
    assert both.missing == {"fan_pct": "no fan"}


def test_window_starts_at_its_length_and_keeps_gaps() -> None:
    """Older readings must not be drawn, and a missing one must stay a gap."""
    nan = float("nan")
    series = Series(array("d", [10, 50, 51, 52]), array("d", [1, 2, nan, 4]))
    assert recent(series, 52.0, 10.0) == [(2.0, 2.0), (1.0, None), (0.0, 4.0)]


def test_long_window_is_thinned_but_keeps_the_peak() -> None:
    """Half an hour must become few points, and a short peak must still show."""
    values = [1.0] * 1800
    values[700] = 99.0
    series = Series(array("d", range(1800)), array("d", values))
    points = recent(series, 1799.0, 1800.0)
    assert len(points) <= 1.2 * MAX_POINTS
    assert max(v for _, v in points if v is not None) == 99.0
    assert points[-1][0] == 0.0


def test_hidden_page_is_not_woken(qtbot: QtBot) -> None:
    """While nobody looks, readings must cost the window nothing."""
    feed = TelemetryFeed()
    telemetry = FakeTelemetry()
    feed.attach(telemetry)
    feed.set_active(False)
    with qtbot.assertNotEmitted(feed.updated, wait=50):
        telemetry.push()
    feed.set_active(True)
    with qtbot.waitSignal(feed.updated):
        telemetry.push()
    feed.detach()
    assert telemetry.subscribers == []


def test_many_readings_update_seldom(qtbot: QtBot) -> None:
    """A burst of readings must become few updates, the last of them after the burst."""
    feed = TelemetryFeed()
    telemetry = FakeTelemetry()
    feed.attach(telemetry)
    feed.set_active(True)
    seen: list[int] = []
    feed.updated.connect(lambda: seen.append(1))
    for _ in range(100):
        telemetry.push()
    qtbot.waitUntil(lambda: len(seen) == 1)
    for _ in range(100):
        telemetry.push()
    qtbot.waitUntil(lambda: len(seen) == 2)
    feed.detach()


def test_readings_of_every_probe_by_gpu(qtbot: QtBot) -> None:
    """Advice must get the readings as they are; without a source there are none."""
    feed = TelemetryFeed()
    assert feed.readings([data.GPU_KEY]) == {}
    telemetry = FakeTelemetry()
    feed.attach(telemetry)
    assert feed.readings([data.GPU_KEY]) == {data.GPU_KEY: telemetry.latest(data.GPU_KEY)}
    feed.detach()


def test_gap_follows_the_pace(qapp: QApplication) -> None:
    """Several probes answer within one interval; together they must redraw the cards once."""
    feed = TelemetryFeed()
    for interval_s, gap_ms in ((0.5, 450), (1.0, 900), (5.0, 900)):
        feed.set_interval(interval_s)
        assert feed._gap.interval() == gap_ms
