"""The memory bar: numbers, verdict, and a sentence."""

from pytestqt.qtbot import QtBot

from tests.fakes import window_data as data
from views.widgets import Kit
from views.widgets.memory_bar import MemoryBar, part_bytes


def test_bar_says_what_it_draws(kit: Kit, qtbot: QtBot) -> None:
    """Name, need, verdict and parts must be in the accessible sentence."""
    bar = MemoryBar(kit)
    qtbot.addWidget(bar)
    memory = data.memory(29, 4096).devices[0]
    bar.show_memory(memory, "CUDA0")
    assert bar.accessibleName().startswith("CUDA0: 5.38\u00a0GiB, fits (Weights 4.10\u00a0GiB")
    assert bar._verdict.text == "fits"


def test_unknown_part_is_not_zero() -> None:
    """A part nobody knows must be "—", not 0."""
    host = data.memory(29, 4096).devices[1]
    assert part_bytes(host, "overhead") is None
    assert part_bytes(host, "weights") is not None
