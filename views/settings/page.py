"""What the user prefers; every change counts at once."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFormLayout, QLabel, QSpinBox, QVBoxLayout, QWidget

from app.store.preferences import INTERVALS_S, Preferences
from views.page import SCROLLED_UNITS, Page, scrolling
from views.settings.choices import Choice
from views.settings.engine_card import EngineCard
from views.settings.folders import Folders
from views.widgets import Banner, Card, Heading, Kit, text_label
from views.widgets.basics import indent
from views.words import number


class SettingsPage(Page):
    """Look and language, measuring, folders, engine, privacy.

    Signals:
        data_folder_requested: The user wants to see where RigTune keeps its files.
    """

    data_folder_requested = Signal()

    def __init__(self, kit: Kit) -> None:
        """Build it with the stored preferences."""
        super().__init__(kit, "", min_units=SCROLLED_UNITS)
        self.title.setText(self.tr("Settings"))
        self.banner = Banner(kit)
        self.body.addWidget(self.banner)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3 * kit.unit)
        self.choices: dict[str, Choice] = {}
        self.engine = EngineCard(kit)
        for card in (self._look_card(), self._measure_card(), self._folder_card(), self.engine,
                     self._privacy_card()):  # fmt: skip
            column.addWidget(card)
        column.addStretch(1)
        self.body.addWidget(scrolling(content), 1)
        kit.options.changed.connect(self._on_options_changed)

    def _card(self, title: str) -> tuple[Card, QFormLayout]:
        card = Card(self.kit)
        card.column.addWidget(Heading(title, 1.1))
        form = QFormLayout()
        form.setHorizontalSpacing(4 * self.kit.unit)
        form.setVerticalSpacing(2 * self.kit.unit)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.FieldsStayAtSizeHint)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        card.column.addLayout(form)
        return card, form

    def _add(
        self, form: QFormLayout, field: str, label: str, values: list[tuple[object, str]]
    ) -> None:
        choice = Choice(self.kit.options, field, label.replace("&", ""), values)
        self.choices[field] = choice
        words = QLabel(label)
        words.setBuddy(choice)
        # An underlined letter takes a little more room than Qt reserves.
        words.setMinimumWidth(words.sizeHint().width() + self.kit.unit)
        form.addRow(words, choice)

    def _look_card(self) -> Card:
        card, form = self._card(self.tr("Look and language"))
        self._add(form, "level", self.tr("&How much to show"), [
            ("simple", self.tr("Simple: plain words, the choices that matter")),
            ("expert", self.tr("Expert: also llama.cpp's own names and options")),
        ])  # fmt: skip
        self._add(form, "theme", self.tr("&Colours"), [
            ("auto", self.tr("As the system")), ("light", self.tr("Light")),
            ("dark", self.tr("Dark")),
        ])  # fmt: skip
        self._add(form, "contrast", self.tr("C&ontrast"), [
            ("auto", self.tr("As the system")), ("high", self.tr("High contrast")),
        ])  # fmt: skip
        # A language is named in itself: who cannot read the other one finds it.
        self._add(form, "language", self.tr("&Language"), [
            ("system", self.tr("As the system")), ("en", "English"), ("zh", "简体中文"),
        ])  # fmt: skip
        self._add(form, "memory_unit", self.tr("&Memory sizes"), [
            ("binary", self.tr("GiB and MiB (as drivers count)")),
            ("decimal", self.tr("GB and MB (as shops count)")),
        ])  # fmt: skip
        self._add(form, "temperature_unit", self.tr("&Temperatures"), [
            ("celsius", self.tr("Celsius")), ("fahrenheit", self.tr("Fahrenheit")),
        ])  # fmt: skip
        return card

    def _measure_card(self) -> Card:
        card, form = self._card(self.tr("Measuring"))
        self._add(form, "interval_s", self.tr("&Live readings every"), [
            (s, self.tr("{n} s").format(n=number(s, 0 if s >= 1 else 1))) for s in INTERVALS_S
        ])  # fmt: skip
        self.headroom = QSpinBox()
        indent(self.headroom)
        self.headroom.setRange(0, 1 << 16)
        self.headroom.setSingleStep(128)
        self.headroom.setSpecialValueText(self.tr("automatic"))
        self.headroom.setSuffix("\u00a0MiB")
        self.headroom.setKeyboardTracking(False)
        self.headroom.setValue(self.kit.options.value.headroom_mib)
        self.headroom.valueChanged.connect(self._on_headroom_changed)
        label = QLabel(self.tr("Memory to lea&ve free"))
        label.setBuddy(self.headroom)
        self.headroom.setAccessibleName(self.tr("Memory to leave free"))
        form.addRow(label, self.headroom)
        hint = self.tr(
            "Automatic leaves 512 MiB on a GPU that drives a display, 256 MiB on others. During a "
            "search readings follow its own pace."
        )
        card.column.addWidget(text_label(hint, muted=True))
        return card

    def _folder_card(self) -> Card:
        card, _ = self._card(self.tr("Folders"))
        hint = self.tr(
            "Models of LM Studio, Ollama, Hugging Face, Jan, GPT4All and llama.cpp are found where "
            "they lie. Further folders to look into:"
        )
        card.column.addWidget(text_label(hint, muted=True))
        self.folders = Folders(self.kit)
        card.column.addWidget(self.folders)
        self._show_data = self.kit.button(self.tr("Show RigTune's Own Files"), "open")
        self._show_data.clicked.connect(self.data_folder_requested)
        card.add_left(self._show_data)
        return card

    def _privacy_card(self) -> Card:
        card, _ = self._card(self.tr("Privacy"))
        text = self.tr(
            "RigTune works offline and needs no account. It sends nothing: no usage, no results, "
            "no conversations. Models are read where they lie and never changed. Results and "
            "conversations stay in RigTune's own folder on this machine; logs hold no text of "
            "conversations. What leaves this machine is only what you copy or export yourself."
        )
        card.column.addWidget(text_label(text))
        return card

    def show_file(self, path: str) -> None:
        """Say where RigTune keeps its files, for who has no file manager."""
        self.banner.say(self.tr("RigTune's files lie in {folder}").format(folder=path))

    @Slot(int)
    def _on_headroom_changed(self, mib: int) -> None:
        self.kit.options.change(headroom_mib=mib)

    @Slot(object)
    def _on_options_changed(self, _before: Preferences) -> None:
        for choice in self.choices.values():
            choice.show_value()
