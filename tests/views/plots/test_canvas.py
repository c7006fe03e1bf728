"""Throttle bands and the cursor of live strips."""

from PySide6.QtCore import QPoint
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from views.plots.canvas import bands_of, nearest, polygon_of, runs_of
from views.plots.live_strip import LiveStrip, StripInfo
from views.widgets import Kit

INFO = StripInfo(name="Core clock", color="decode", unit="MHz")


def test_bands_join_neighbours() -> None:
    """Readings in a row must be one band; unknown and zero end it."""
    points = [(5.0, 0.0), (4.0, 1.0), (3.0, 2.0), (2.0, 0.0), (1.0, None), (0.0, 1.0)]
    assert bands_of(points) == ((5.0, 3.0), (1.0, 0.0))
    assert bands_of([]) == ()


def test_nearest_reading() -> None:
    """The reading next to the cursor must be found, none without readings."""
    assert nearest([(10.0, 1.0), (4.0, 2.0)], 6.0) == (4.0, 2.0)
    assert nearest([], 6.0) is None


def test_cursor_reads_the_curve(kit: Kit, qtbot: QtBot) -> None:
    """Under the cursor the past must be readable; away from it the newest value again."""
    strip = LiveStrip(kit, INFO)
    qtbot.addWidget(strip)
    strip.resize(300, 120)
    strip.show_points([(60.0, 1400.0), (30.0, 900.0), (0.0, 1700.0)], 60.0)
    strip.show()
    canvas = strip._canvas
    QTest.mouseMove(canvas, QPoint(canvas.width() // 2, 20))
    qtbot.waitUntil(lambda: strip._value.text() == "30 s ago: 900\u00a0MHz")
    strip._on_pointed(None)
    assert strip._value.text() == "1,700\u00a0MHz"


def test_band_is_painted_and_said(kit: Kit, qtbot: QtBot) -> None:
    """A slowed span must differ on screen and stand in the sentence."""
    strip = LiveStrip(kit, INFO)
    qtbot.addWidget(strip)
    strip.resize(300, 120)
    points = [(60.0, 10.0), (0.0, 10.0)]
    strip.show_points(points, 60.0)
    strip.show()
    before = strip._canvas.grab().toImage()
    strip.show_points(points, 60.0, bands=((40.0, 20.0),))
    assert strip._canvas.grab().toImage() != before
    assert strip.accessibleName().endswith("slowed down for 20 s of it")


def test_runs_end_at_gaps_and_stay_inside() -> None:
    """A missing reading must split the curve; one above the axis is drawn at its top."""
    points = [(4.0, 10.0), (3.0, 130.0), (2.0, None), (1.0, 0.0), (0.0, 5.0)]
    assert runs_of(points, 100.0) == [[(4.0, 10.0), (3.0, 100.0)], [(1.0, 0.0), (0.0, 5.0)]]
    assert runs_of([(0.0, None)], 100.0) == []


def test_polygon_holds_every_point() -> None:
    """What the painter gets must be the points themselves, in order."""
    shape = polygon_of([(60.0, 0.25), (0.5, -3.0)])
    assert [(shape.at(i).x(), shape.at(i).y()) for i in range(shape.size())] == [
        (60.0, 0.25), (0.5, -3.0),
    ]  # fmt: skip
