"""Other ways to run the model: faster, with a longer context, or quieter."""

import msgspec
from PySide6.QtCore import QCoreApplication, Signal, Slot
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from app.domain.outcome import OUTCOMES
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import Goal, SweepResult
from app.domain.trial import Trial
from app.domain.units import format_tok_s, significant
from views.plots.sweep_data import settings_of, speed_of, usual_depth
from views.widgets.basics import Heading, Kit, text_label
from views.words import differing_texts, number

translate = QCoreApplication.translate

FASTER_FRAC = 0.02
"""Less is within the scatter of two loads."""
QUIET_SPEED_FRAC = 0.7
QUIET_POWER_FRAC = 0.95


class Alternative(Record, frozen=True, kw_only=True):
    """Something else this search has measured.

    Attributes:
        what: ``faster``, ``longer`` or ``quieter``.
        settings: What ran.
        text: What it would bring, with numbers.
    """

    what: str
    settings: Settings
    text: str


def alternatives(result: SweepResult) -> tuple[Alternative, ...]:
    """Return what was measured and is better than the recommendation in one respect."""
    found = (_faster(result), _longer(result), _quieter(result))
    return tuple(alternative for alternative in found if alternative is not None)


def _candidates(result: SweepResult) -> list[Trial]:
    depth = usual_depth(result.trials)
    return [
        trial
        for trial in result.trials
        if OUTCOMES[trial.outcome].may_win and trial.request.workload.depth == depth
    ]


def _decode(trial: Trial) -> float:
    speed = speed_of(trial, "decode")
    return speed.median if speed else 0.0


def _faster(result: SweepResult) -> Alternative | None:
    best = result.recommended
    if best is None or best.decode_tok_s is None:
        return None
    fastest = max(_candidates(result), key=_decode, default=None)
    limit = best.decode_tok_s.median * (1 + FASTER_FRAC)
    if fastest is None or _decode(fastest) <= limit or settings_of(fastest) == best.settings:
        return None
    text = translate("Alternatives", "answers at {speed}, but the whole request takes longer")
    return Alternative(
        what="faster", settings=settings_of(fastest),
        text=text.format(speed=format_tok_s(_decode(fastest))),
    )  # fmt: skip


def _longer(result: SweepResult) -> Alternative | None:
    best = result.recommended
    if best is None:
        return None
    longer = [
        point
        for point in result.context_curve
        if point.fits and point.n_ctx > best.settings.n_ctx and point.meets_floor is not False
    ]
    point = max(longer, key=lambda p: (p.n_ctx, p.depth), default=None)
    if point is None or point.decode_tok_s is None:
        return None
    text = translate("Alternatives", "{n} tokens of context; {speed} when it is full")
    return Alternative(
        what="longer",
        settings=_with_context(best.settings, point.n_ctx),
        text=text.format(n=number(point.n_ctx), speed=format_tok_s(point.decode_tok_s.median)),
    )


def _with_context(settings: Settings, n_ctx: int) -> Settings:
    return msgspec.structs.replace(settings, n_ctx=n_ctx)


def _power(trial: Trial) -> float | None:
    window = trial.telemetry
    return sum(window.power_w.values()) if window is not None and window.power_w else None


def _quieter(result: SweepResult) -> Alternative | None:
    best = result.recommended
    if best is None or best.decode_tok_s is None or best.trial >= len(result.trials):
        return None
    now_w = _power(result.trials[best.trial])
    enough = QUIET_SPEED_FRAC * best.decode_tok_s.median
    calm = [t for t in _candidates(result) if _power(t) is not None and _decode(t) >= enough]
    trial = min(calm, key=lambda t: _power(t) or 0.0, default=None)
    if trial is None or now_w is None or settings_of(trial) == best.settings:
        return None
    power_w = _power(trial) or 0.0
    if power_w > QUIET_POWER_FRAC * now_w:
        return None
    text = translate("Alternatives", "{speed} at {watts} W instead of {now} W")
    return Alternative(
        what="quieter", settings=settings_of(trial),
        text=text.format(
            speed=format_tok_s(_decode(trial)), watts=significant(power_w), now=significant(now_w)
        ),
    )  # fmt: skip


class Alternatives(QWidget):
    """What this search knows of other wishes, and a search for those it does not know.

    Signals:
        search_requested: ``Goal`` to search for.
    """

    search_requested = Signal(object)

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(kit.unit)
        self._column.addWidget(Heading(self.tr("Alternatives"), 1.1))
        self._rows: QWidget | None = None
        self.buttons: dict[str, QWidget] = {}

    def show_result(self, result: SweepResult) -> None:
        """Show the alternatives of ``result``."""
        if self._rows is not None:
            self._rows.hide()
            self._rows.deleteLater()
        self._rows = QWidget()
        grid = QGridLayout(self._rows)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(3 * self._kit.unit)
        grid.setVerticalSpacing(0)
        gap = self._kit.unit
        grid.setColumnStretch(0, 1)
        known = {alternative.what: alternative for alternative in alternatives(result)}
        best = result.recommended
        self.buttons = {}
        for row, (what, title, missing, goal) in enumerate(self._kinds()):
            heading = text_label(title, wrap=False)
            heading.setContentsMargins(0, gap, 0, 0)
            grid.addWidget(heading, 2 * row, 0)
            alternative = known.get(what)
            text = missing
            if alternative is not None and best is not None:
                change = differing_texts([best.settings, alternative.settings])[1]
                text = f"{change}: {alternative.text}"
            can_search = alternative is None and goal is not None
            columns = 1 if can_search else 2
            grid.addWidget(
                text_label(text, muted=True, is_selectable=False), 2 * row + 1, 0, 1, columns
            )
            if can_search and goal is not None:
                button = self._kit.button(self.tr("Search for It"), "next", "quiet")
                button.setAccessibleName(self.tr("Search: {what}").format(what=title))
                button.setProperty("goal", goal.value)
                button.clicked.connect(self._on_clicked)
                self.buttons[what] = button
                grid.addWidget(button, 2 * row, 1, 2, 1)
        self._column.addWidget(self._rows)

    def _kinds(self) -> tuple[tuple[str, str, str, Goal | None], ...]:
        return (
            ("faster", self.tr("Faster"),
             self.tr("nothing that was measured answers faster"), None),
            ("longer", self.tr("Longer context"),
             self.tr("no longer context was measured in this search"), Goal.LONG_CONTEXT),
            ("quieter", self.tr("Quieter"),
             self.tr("nothing that was measured draws clearly less power"), Goal.QUIET),
        )  # fmt: skip

    @Slot()
    def _on_clicked(self) -> None:
        button = self.sender()
        if isinstance(button, QWidget):
            self.search_requested.emit(Goal(str(button.property("goal"))))
