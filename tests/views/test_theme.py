"""Colours and spacing: readable in every look, changed while the window is open."""

import re
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage, QPalette
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QSlider
from pytestqt.qtbot import QtBot

import views
from app.runtime import asset
from views.colors import ROLES, Colors, Scheme, colors_of
from views.stylesheet import stylesheet
from views.theme import Theme, palette_of, scale_font, unit

LOOKS = [colors_of(s, strong) for s in (Scheme.LIGHT, Scheme.DARK) for strong in (False, True)]
TEXTS = ("text", "muted", "accent", "good", "warn", "bad")
SERIES = ("prefill", "decode", "memory", "power", "heat")


def luminance(color: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colors", LOOKS)
def test_text_is_readable(colors: Colors) -> None:
    """Every text colour must reach 4.5:1 on every background that text lies on."""
    for name in TEXTS:
        for ground in (colors.window, colors.surface):
            assert contrast(getattr(colors, name), ground) >= 4.5, name
    assert contrast(colors.text, colors.sunken) >= 4.5
    assert contrast(colors.on_accent, colors.accent) >= 4.5


@pytest.mark.parametrize("colors", LOOKS)
def test_lines_are_visible(colors: Colors) -> None:
    """Curves and borders of controls must reach 3:1 on the card."""
    for name in (*SERIES, "control"):
        assert contrast(getattr(colors, name), colors.surface) >= 3.0, name


def test_colours_live_in_one_file() -> None:
    """No other module may name a colour."""
    folder = Path(views.__file__).parent
    pattern = re.compile(r"#[0-9a-fA-F]{6}\b|QColor\(\d")
    found = [
        path.name
        for path in folder.rglob("*.py")
        if path.name != "colors.py" and pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_look_changes_while_the_window_is_open(theme: Theme, qtbot: QtBot) -> None:
    """Choosing the dark look must change palette and colours at once and tell about it."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    with qtbot.waitSignal(theme.changed):
        theme.choose(Scheme.DARK)
    assert theme.is_dark
    window = app.palette().color(QPalette.ColorRole.Window)
    assert window.name() == theme.colors.window


def test_same_look_is_not_applied_twice(theme: Theme, qtbot: QtBot) -> None:
    """Choosing what is in use must not repaint everything."""
    with qtbot.assertNotEmitted(theme.changed):
        theme.choose(Scheme.LIGHT)


def test_disabled_text_differs() -> None:
    """A control that cannot be used must look so."""
    palette = palette_of(LOOKS[0])
    group = QPalette.ColorGroup
    role = QPalette.ColorRole.ButtonText
    assert palette.color(group.Disabled, role) != palette.color(group.Active, role)


def test_spacing_grows_with_the_font(qtbot: QtBot) -> None:
    """Large text must get more room."""
    label = QLabel("x")
    qtbot.addWidget(label)
    before = unit(label.font())
    scale_font(label, 2.0)
    assert unit(label.font()) > before


def test_arrows_show_wherever_the_program_lies(tmp_path: Path, qtbot: QtBot) -> None:
    """Spaces, brackets and letters outside ASCII in the path cost a control no arrow."""
    odd = tmp_path / "Jürgen" / "Program Files (x86)" / "模型"
    shutil.copytree(asset("icons/controls"), odd)
    box = QComboBox()
    qtbot.addWidget(box)
    box.resize(120, 30)

    def picture(folder: Path, arrow: str) -> QImage:
        sheet = stylesheet(ROLES, 4, controls=folder.as_posix())
        box.setStyleSheet(sheet.replace("down.svg", arrow))
        return box.grab().toImage()

    here = picture(asset("icons/controls"), "down.svg")
    assert picture(odd, "down.svg") == here
    assert picture(odd, "up.svg") != here


@pytest.mark.parametrize("unit_px", range(3, 11))
def test_handle_of_a_slider_is_round(qtbot: QtBot, unit_px: int) -> None:
    """At no size of the text may it fall back to a square."""
    slider = QSlider(Qt.Orientation.Horizontal)
    qtbot.addWidget(slider)
    slider.setStyleSheet(stylesheet(LOOKS[0], unit_px, controls=""))
    slider.setMaximum(2)
    slider.setValue(1)
    slider.resize(30 * unit_px, 6 * unit_px)
    picture = slider.grab().toImage()
    accent = QColor(LOOKS[0].accent)
    middle = 15 * unit_px
    rows = [
        sum(picture.pixelColor(x, y) == accent for x in range(middle, picture.width()))
        for y in range(picture.height())
    ]
    drawn = [n for n in rows if n]  # right of the middle there is the handle only
    assert len(drawn) > 2 * unit_px
    assert drawn[0] < max(drawn)
    assert drawn[-1] < max(drawn)
