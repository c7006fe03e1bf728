"""Icons: drawn in the colours of the look."""

import pytest
from PySide6.QtGui import QColor, QIcon
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from views.colors import DARK, Scheme
from views.widgets import Kit


def colours(icon: QIcon) -> set[str]:
    """Return the opaque colours of an icon."""
    image = icon.pixmap(32, 32).toImage()
    pixels = [image.pixelColor(x, y) for x in range(32) for y in range(32)]
    return {QColor(p).name() for p in pixels if p.alpha() == 255}


def test_every_icon_draws_something(kit: Kit) -> None:
    """A broken file must not become an empty button."""
    names = kit.icons.names
    assert len(names) > 20
    empty = [name for name in names if not colours(kit.icons.icon(name))]
    assert empty == []


@pytest.mark.parametrize("name", ["chat", "warn"])
def test_icon_has_the_colour_of_the_text(kit: Kit, name: str) -> None:
    """The tint must be the colour asked for."""
    assert kit.theme.colors.bad in colours(kit.icons.icon(name, "bad"))


def test_button_follows_the_look(kit: Kit, qtbot: QtBot) -> None:
    """An icon in use must change with the look."""
    button = QPushButton()
    qtbot.addWidget(button)
    kit.icons.bind(button, "chat")
    kit.theme.choose(Scheme.DARK)
    qtbot.waitUntil(lambda: DARK.text in colours(button.icon()))


def test_deleted_button_does_no_harm(kit: Kit, qtbot: QtBot) -> None:
    """A change of the look after a button has gone must not fail."""
    button = QPushButton()
    kit.icons.bind(button, "chat")
    button.deleteLater()
    qtbot.wait(1)
    kit.theme.choose(Scheme.DARK)
