"""The bounds of a search: context, floor, time, KV cache, headroom."""

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QSlider,
    QSpinBox,
    QWidget,
)

from app.domain.model import ModelSpec
from app.domain.sweep import BudgetName, Goal, SweepRequest
from app.domain.units import MIB
from views.widgets.basics import Kit, ValueLabel, indent
from views.words import budget_label, number

CONTEXTS = (2048, 4096, 8192, 12288, 16384, 24576, 32768, 49152, 65536, 98304, 131072, 262144)


class Constraints(QWidget):
    """A form whose values make a ``SweepRequest``.

    Signals:
        context_changed: Context length, tokens; while the slider moves.
    """

    context_changed = Signal(int)

    def __init__(self, kit: Kit) -> None:
        """Build it with defaults."""
        super().__init__()
        self._contexts: tuple[int, ...] = CONTEXTS
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setHorizontalSpacing(3 * kit.unit)
        form.setVerticalSpacing(2 * kit.unit)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        self.context = QSlider(Qt.Orientation.Horizontal)
        self.context.setPageStep(1)
        self.context.setTickPosition(QSlider.TickPosition.TicksBelow)
        self.context.setToolTip("n_ctx")
        self._context_value = ValueLabel(self.tr("Context length"))
        label = QLabel(self.tr("&Context length"))
        label.setBuddy(self.context)
        form.addRow(label, self._beside(self.context, self._context_value))
        self.floor = QDoubleSpinBox()
        indent(self.floor)
        self.floor.setRange(0, 1000)
        self.floor.setDecimals(1)
        self.floor.setSpecialValueText(self.tr("none"))
        self.floor.setSuffix("\u00a0tok/s")
        form.addRow(self.tr("&Slowest acceptable decode"), self.floor)
        self.budget = QComboBox()
        for name in BudgetName:
            self.budget.addItem(budget_label(name), name.value)
        self.budget.setCurrentIndex(list(BudgetName).index(BudgetName.STANDARD))
        self.budget.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.budget.setMinimumContentsLength(16)
        form.addRow(self.tr("&Time to spend"), self.budget)
        self.headroom = QSpinBox()
        indent(self.headroom)
        self.headroom.setRange(0, 65536)
        self.headroom.setSingleStep(128)
        self.headroom.setSpecialValueText(self.tr("automatic"))
        self.headroom.setSuffix("\u00a0MiB")
        self.headroom.setValue(kit.options.value.headroom_mib)
        form.addRow(self.tr("Memory to &leave free"), self.headroom)
        self.q8 = QCheckBox(self.tr("&Allow an 8-bit KV cache (q8_0) where it wins clearly"))
        form.addRow(self.q8)
        is_expert = kit.options.value.is_expert
        for widget in (self.headroom, self.q8):
            form.setRowVisible(widget, is_expert)
        self.context.valueChanged.connect(self._on_context_changed)
        self.set_contexts(CONTEXTS[:7], CONTEXTS[1])

    def _beside(self, slider: QSlider, value: ValueLabel) -> QHBoxLayout:
        row = QHBoxLayout()
        row.addWidget(slider, 1)
        value.setMinimumWidth(value.fontMetrics().horizontalAdvance("262,144 tokens "))
        row.addWidget(value)
        slider.setAccessibleName(self.tr("Context length, tokens"))
        return row

    @property
    def n_ctx(self) -> int:
        """Context length the user needs, tokens."""
        return self._contexts[self.context.value()]

    def set_model(self, spec: ModelSpec, need: int) -> None:
        """Offer contexts up to what the model was trained for."""
        limit = spec.n_ctx_train or CONTEXTS[-1]
        offered = [n for n in CONTEXTS if n <= limit] or [limit]
        self.set_contexts(tuple(offered), need)

    def set_contexts(self, contexts: tuple[int, ...], need: int) -> None:
        """Offer ``contexts`` and choose the first that holds ``need`` tokens."""
        self._contexts = contexts
        with QSignalBlocker(self.context):
            self.context.setRange(0, len(contexts) - 1)
        self.need_context(need)
        self._on_context_changed()

    def need_context(self, need: int) -> None:
        """Choose the smallest offered context that holds ``need`` tokens."""
        fitting = (i for i, n in enumerate(self._contexts) if n >= need)
        self.context.setValue(next(fitting, len(self._contexts) - 1))

    def request(self, goal: Goal) -> SweepRequest:
        """Return the request these bounds make."""
        return SweepRequest(
            goal=goal,
            n_ctx_min=self.n_ctx,
            floor_tok_s=self.floor.value() or None,
            headroom_bytes=self.headroom.value() * MIB or None,
            kv_types=("f16", "q8_0") if self.q8.isChecked() else ("f16",),
            budget=BudgetName(str(self.budget.currentData())),
        )

    @Slot()
    def _on_context_changed(self) -> None:
        self._context_value.set_value(self.tr("{n} tokens").format(n=number(self.n_ctx)))
        self.context_changed.emit(self.n_ctx)
