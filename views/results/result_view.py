"""The answer of a search: what to use, why, compared with what, and what to do with it."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFileDialog,
    QGridLayout,
    QMenu,
    QVBoxLayout,
    QWidget,
)

from app.domain.errors import ErrorInfo
from app.domain.sweep import Recommended, SweepResult
from app.domain.units import format_seconds, format_tok_s
from views.advice_page import sentence as advice
from views.page import scrolling
from views.plots.context_plot import ContextPlot
from views.plots.sweep_data import context_points, depth_of
from views.plots.sweep_plot import SweepPlot
from views.results.alternatives import Alternatives
from views.results.comparison import Comparison
from views.results.milliseconds import Milliseconds
from views.results.reasons import Reasons
from views.results.report import file_stem, report_html
from views.results.text import (
    device_text,
    gain_text,
    points_of,
    reason_text,
    result_text,
    setting_rows,
)
from views.widgets import Banner, Card, Heading, Kit, Pill, Table, ValueLabel, text_label
from views.widgets.flow import Flow
from views.widgets.sides import Sides
from views.words import depth_text, paragraph, rate_text, settings_text, status_label, status_tone

FORMATS = {
    "llama-server": "llama-server",
    "llama-bench": "llama-bench",
    "llama-cpp-python": "llama-cpp-python",
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "koboldcpp": "KoboldCpp",
}


class ResultView(QWidget):
    """Shows one ``SweepResult``.

    Signals:
        chat_requested: Profile to chat with.
        export_requested: Profile and format.
        apply_requested: Profile to use for this model from now on.
        report_requested: Path to write the report to, and its text as HTML.
        search_requested: ``Goal``: the same model for another wish.
    """

    chat_requested = Signal(str)
    export_requested = Signal(str, str)
    apply_requested = Signal(str)
    report_requested = Signal(str, str)
    search_requested = Signal(object)

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        self._result: SweepResult | None = None
        self._model = ""
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(3 * kit.unit)
        self.banner = Banner(kit)
        outer.addWidget(self.banner)
        content = QWidget()
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(3 * kit.unit)
        self._column.addWidget(self._answer_card(kit))
        self._middle = self._middle_row(kit)
        self._column.addWidget(self._middle)
        self.plot = SweepPlot(kit)
        self.context_plot = ContextPlot(kit)
        self._plots = [self._plot_card(kit, plot) for plot in (self.plot, self.context_plot)]
        self._all = self._settings_card(kit)
        self._column.addWidget(self._all)
        self._column.addStretch(1)
        outer.addWidget(scrolling(content), 1)
        outer.addWidget(self._actions(kit))

    def _answer_card(self, kit: Kit) -> Card:
        card = Card(kit)
        row = Sides(kit)
        left, right = QWidget(), QWidget()
        texts = QVBoxLayout(left)
        texts.setContentsMargins(0, 0, 0, 0)
        texts.setSpacing(kit.unit)
        self._caption = text_label(self.tr("Recommended"), muted=True)
        self._settings = Heading("", 1.25)
        self._settings.setWordWrap(True)
        self._gain = text_label()
        self._status = Pill(kit)
        for widget in (self._caption, self._settings, self._gain):
            texts.addWidget(widget)
        texts.addWidget(self._status, 0, Qt.AlignmentFlag.AlignLeft)
        texts.addStretch(1)
        row.add(left, 3)
        numbers = QGridLayout(right)
        numbers.setContentsMargins(0, 0, 0, 0)
        numbers.setColumnStretch(1, 1)
        numbers.setHorizontalSpacing(3 * kit.unit)
        numbers.setVerticalSpacing(kit.unit // 2)
        names = (self.tr("Decode"), self.tr("Prefill"), self.tr("Request"), self.tr("Memory"))
        self._numbers = [ValueLabel(name, 1.5 if i == 0 else 1.0, bold=i == 0)
                         for i, name in enumerate(names)]  # fmt: skip
        for index, (name, value) in enumerate(zip(names, self._numbers, strict=True)):
            numbers.addWidget(text_label(name, muted=True, wrap=False), index, 0)
            numbers.addWidget(value, index, 1)
        numbers.setRowStretch(len(names), 1)
        row.add(right, 2)
        card.column.addWidget(row)
        return card

    def _middle_row(self, kit: Kit) -> QWidget:
        holder = Sides(kit)
        left = Card(kit)
        self._comparison = Comparison(kit)
        left.column.addWidget(self._comparison)
        self._reasons = Reasons(kit)
        left.column.addWidget(self._reasons)
        left.column.addStretch(1)
        right = Card(kit)
        self.milliseconds = Milliseconds(kit)
        right.column.addWidget(self.milliseconds)
        self.alternatives = Alternatives(kit)
        self.alternatives.search_requested.connect(self.search_requested)
        right.column.addWidget(self.alternatives)
        right.column.addStretch(1)
        holder.add(left)
        holder.add(right)
        return holder

    def _settings_card(self, kit: Kit) -> Card:
        card = Card(kit)
        card.column.addWidget(Heading(self.tr("All settings"), 1.1))
        self._table = Table(
            kit, self.tr("Recommended settings"),
            [self.tr("Setting"), self.tr("Value")],
        )  # fmt: skip
        card.column.addWidget(self._table)
        return card

    def _plot_card(self, kit: Kit, plot: QWidget) -> Card:
        card = Card(kit)
        card.column.addWidget(plot)
        card.setFixedHeight(95 * kit.unit)
        self._column.addWidget(card)
        return card

    def _actions(self, kit: Kit) -> Flow:
        self.action_row = Flow(2 * kit.unit)
        self._copy = kit.button(self.tr("Copy as Text"), "copy")
        self._copy.clicked.connect(self._on_copy_clicked)
        self._export = kit.button(self.tr("Export"), "export")
        menu = QMenu(self._export)
        for form, name in FORMATS.items():
            menu.addAction(name).setData(form)
        menu.triggered.connect(self._on_export_triggered)
        self._export.setMenu(menu)
        self._report = kit.button(self.tr("Report…"), "print")
        self._report.clicked.connect(self._on_report_clicked)
        self.apply = kit.button(self.tr("Apply"), "good")
        self.apply.setToolTip(self.tr("Chat and server use these settings for this model"))
        self.apply.clicked.connect(self._on_apply_clicked)
        self.chat = kit.button(self.tr("Chat"), "chat", "primary")
        self.chat.setToolTip(self.tr("Chat with these settings"))
        self.chat.clicked.connect(self._on_chat_clicked)
        self.action_row.add_gap()
        for button in (self._copy, self._report, self._export, self.apply, self.chat):
            button.setEnabled(False)
            self.action_row.addWidget(button)
        return self.action_row

    def append(self, card: QWidget) -> None:
        """Add ``card`` below everything else."""
        self._column.insertWidget(self._column.count() - 1, card)

    def show_result(
        self, result: SweepResult, model: str, floor_tok_s: float | None = None
    ) -> None:
        """Show ``result`` of a search of ``model``."""
        self._result, self._model = result, model
        self.banner.hide()
        if result.error is not None:
            self.banner.show_error(result.error)
        point = result.recommended
        self._show_answer(point, result)
        self._comparison.show_points(points_of(result))
        self.milliseconds.show_result(result)
        self.alternatives.show_result(result)
        reasons = [reason_text(reason) for reason in result.reasons]
        reasons += [paragraph([advice("finding", f), advice("remedy", f)]) for f in result.findings]
        self._reasons.show_texts(reasons)
        for part in (self._middle, self._all):
            part.setVisible(point is not None)
        self._table.set_all_rows(
            [
                (f"{label} ({name})" if self._kit.options.value.is_expert else label, value)
                for label, value, name in setting_rows(point.settings)
            ]
            if point else []
        )  # fmt: skip
        self.plot.show_trials(result.trials, result)
        self.context_plot.show_result(result, floor_tok_s)
        self._plots[1].setVisible(len(context_points(result)) > 1)  # one point is no curve
        self._copy.setEnabled(True)
        self._report.setEnabled(True)
        has_profile = bool(point and point.profile_id)
        for button in (self._export, self.apply, self.chat):
            button.setEnabled(has_profile)

    def show_export(self, text: str) -> None:
        """Put an exported command on the clipboard and say so."""
        QGuiApplication.clipboard().setText(text)
        self.banner.say(self.tr("Copied to the clipboard: {text}").format(text=text), "good")

    def show_problem(self, error: ErrorInfo) -> None:
        """Say what went wrong."""
        self.banner.show_error(error)

    def _show_answer(self, point: Recommended | None, result: SweepResult) -> None:
        self._status.show_state(
            self.tr("search {status}: trials {n}, loads {loads}, {time}").format(
                status=status_label(result.status), n=len(result.trials),
                loads=result.n_model_loads,
                time=format_seconds(result.virtual_s or result.measured_s),
            ),
            status_tone(result.status),
        )  # fmt: skip
        self._gain.setText(gain_text(result))
        self._gain.setVisible(bool(self._gain.text()))
        self._caption.setText(self.tr("Recommended"))
        if point is None:
            self._settings.setText(self.tr("No configuration could be recommended"))
            for number in self._numbers:
                number.set_value(None, self.tr("Nothing was measured"))
            return
        self._settings.setText(settings_text(point.settings))
        depth = depth_of(result)
        if depth is not None:
            caption = self.tr("Recommended · speeds {depth}")
            self._caption.setText(caption.format(depth=depth_text(depth)))
        decode = point.decode_tok_s
        texts = (
            format_tok_s(decode.median) if decode else None,
            f"{rate_text(point.prefill_tok_s)}\u00a0tok/s" if point.prefill_tok_s else None,
            format_seconds(point.request_s),
            device_text(point),
        )
        for number, text in zip(self._numbers, texts, strict=True):
            number.set_value(text)

    @Slot()
    def _on_copy_clicked(self) -> None:
        if self._result is not None:
            QGuiApplication.clipboard().setText(result_text(self._result, self._model))
            self.banner.say(self.tr("The result is on the clipboard."), "good")

    @Slot()
    def _on_report_clicked(self) -> None:
        dialog = QFileDialog(self, self.tr("Save a report to print"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(self.tr("PDF (*.pdf);;Web page (*.html)"))
        dialog.setDefaultSuffix("pdf")
        dialog.selectFile(f"{file_stem(self._model)}.pdf")
        dialog.fileSelected.connect(self.write_report)
        dialog.open()

    @Slot(str)
    def write_report(self, path: str) -> None:
        """Ask for the report at ``path``."""
        if self._result is not None:
            self.report_requested.emit(path, report_html(self._result, self._model))

    def show_written(self, path: str) -> None:
        """Say that the report is there."""
        self.banner.say(self.tr("Written: {path}").format(path=path), "good")

    @Slot()
    def _on_apply_clicked(self) -> None:
        profile = self._profile_id()
        if profile:
            self.apply_requested.emit(profile)
            text = self.tr("Chat and server use these settings for {model} from now on.")
            self.banner.say(text.format(model=self._model), "good")

    @Slot(object)
    def _on_export_triggered(self, action: object) -> None:
        profile = self._profile_id()
        if profile:
            self.export_requested.emit(profile, str(action.data()))  # type: ignore[attr-defined]

    @Slot()
    def _on_chat_clicked(self) -> None:
        profile = self._profile_id()
        if profile:
            self.chat_requested.emit(profile)

    def _profile_id(self) -> str:
        point = self._result.recommended if self._result else None
        return (point.profile_id or "") if point else ""
