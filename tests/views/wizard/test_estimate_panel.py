"""The wizard's instant estimate: bars of what is needed, and where the figures come from."""

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.domain.settings import Settings
from app.domain.units import GIB, MIB
from app.session import Estimate
from tests.fakes.shapes import a_spec
from views.widgets.basics import Kit, ValueLabel
from views.wizard.estimate_panel import EstimatePanel

CARD = DeviceMemory(
    device="CUDA0", weights_bytes=GIB, driver_context_bytes=412 * MIB, growth_bytes=88 * MIB,
    total_bytes=GIB + 500 * MIB, free_bytes=4 * GIB, verdict=Verdict.FITS,
    measured_parts=("driver_context", "growth"), measured_driver="nvidia 580.10",
)  # fmt: skip
SENTENCE = "Driver and growth: measured on this machine with nvidia 580.10."


def test_measured_parts_are_in_the_bar_and_said(kit: Kit, qtbot: QtBot) -> None:
    """What a real load showed is a part of the bar, and its driver is named below."""
    panel = EstimatePanel(kit)
    qtbot.addWidget(panel)
    estimate = MemoryEstimate(
        devices=(CARD,), source=MemorySource.FORMULA, verdict=Verdict.FITS, max_error_pct=4.0
    )
    answer = Estimate(
        settings=Settings(n_gpu_layers=9), estimate=estimate, max_n_gpu_layers=9, max_n_ctx=4096,
        overhead_source=SENTENCE,
    )  # fmt: skip
    panel.show_estimate(answer, a_spec())
    texts = {label.text() for label in panel.findChildren(QLabel)}
    assert any(SENTENCE in text for text in texts)
    values = {label.text() for label in panel.findChildren(ValueLabel)}
    assert "500\u00a0MiB" in values
