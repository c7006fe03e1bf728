"""Live strips: numbers, words, and painting with gaps."""

from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from views.plots.canvas import mixed
from views.plots.live_strip import LiveStrip, StripInfo
from views.widgets import Kit

INFO = StripInfo(name="Power", color="power", unit="W", limit=115.0, limit_name="limit")


def test_newest_value_and_summary(kit: Kit, qtbot: QtBot) -> None:
    """The number must be the newest reading, the sentence must hold the range."""
    strip = LiveStrip(kit, INFO)
    qtbot.addWidget(strip)
    strip.show_points([(2.0, 40.0), (1.0, None), (0.0, 80.0)], 60.0)
    assert strip._value.text() == "80\u00a0W"
    assert strip.accessibleName() == "Power: now 80\u00a0W, between 40\u00a0W and 80\u00a0W"


def test_missing_value_has_its_reason(kit: Kit, qtbot: QtBot) -> None:
    """A reading that is not there must show "—" and why, also to a screen reader."""
    strip = LiveStrip(kit, INFO)
    qtbot.addWidget(strip)
    strip.show_points([(0.0, None)], 60.0, "not supported")
    assert strip._value.text() == "—"
    assert strip._value.accessibleDescription() == "not supported"


def test_curve_is_painted_with_its_gap(kit: Kit, qtbot: QtBot) -> None:
    """The curve must be drawn where there are readings and nowhere else."""
    strip = LiveStrip(kit, INFO)
    qtbot.addWidget(strip)
    strip.resize(300, 120)
    strip.show_points(
        [(60.0, 100.0), (40.0, 100.0), (30.0, None), (20.0, 100.0), (0.0, 100.0)], 60.0
    )
    strip.show()
    canvas = strip._canvas
    image = canvas.grab().toImage()
    middle_y = int(image.height() * 0.6)
    ground = kit.theme.color("window").rgb()
    filled = [image.pixelColor(int(image.width() * f), middle_y).rgb() != ground
              for f in (0.1, 0.5, 0.9)]  # fmt: skip
    assert filled == [True, False, True]


def test_ground_is_a_mix_of_curve_and_background() -> None:
    """What lies below the curve must look like a little of its colour over the background."""
    mix = mixed(QColor(200, 0, 100), QColor(0, 0, 0), 0.25)
    assert (mix.red(), mix.green(), mix.blue()) == (50, 0, 25)
