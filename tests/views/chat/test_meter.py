"""The chat's numbers."""

from pytestqt.qtbot import QtBot

from app.domain.events import GenerationFinished
from views.chat.meter import Meter
from views.widgets import Kit


def test_context_is_never_more_than_full(kit: Kit, qtbot: QtBot) -> None:
    """The token that filled the context must not be counted beyond it."""
    meter = Meter(kit)
    qtbot.addWidget(meter)
    meter.set_context(4096)
    meter.show_end(GenerationFinished(reason="context_full", n_prompt=4000, n_gen=97))
    assert meter.context.text() == "4,096 of 4,096 tokens"
