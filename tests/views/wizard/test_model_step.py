"""The first step of the wizard."""

from pytestqt.qtbot import QtBot

from app.session import ModelEntry
from views.widgets import Kit
from views.wizard.model_step import ModelStep


def test_demo_model_is_known_before_its_file_is_there(kit: Kit, qtbot: QtBot) -> None:
    """In a new home the demo model's row must say what it is."""
    step = ModelStep(kit, "")
    qtbot.addWidget(step)
    step.show_models((ModelEntry(id="demo", origin="rigtune", name="demo", path="", file_bytes=1),))
    assert step.table.rows.rows[0][2] == "gemma3 Q4_K_M"
