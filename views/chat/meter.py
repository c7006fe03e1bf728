"""How fast the answer comes, why it is slow, and what the context is filled with."""

import time
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget
from typing_extensions import override

from app.chat.context_use import ContextUse
from app.chat.slowness import SlowCause
from app.domain.events import GenerationFinished, GenerationStarted, PromptProgress, TokenGenerated
from app.domain.units import format_seconds, format_tok_s, significant
from views.chat.turns import Vitals
from views.theme import use_tabular_digits
from views.widgets import Kit
from views.widgets.basics import set_tone, text_label
from views.widgets.live_text import LiveText
from views.words import paragraph, sentence

NOW_S = 1.0
"""The speed of now is that of the last second."""
SHOW_S = 0.25
_SEP = " \u00b7 "
_NBSP = "\u00a0"


class Meter(QWidget):
    """A line of numbers, a line for what slows the answer down, and the context gauge."""

    def __init__(self, kit: Kit, clock_s: Callable[[], float] = time.perf_counter) -> None:
        """Start without numbers."""
        super().__init__()
        self._clock_s = clock_s
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(kit.unit // 2)
        self.speed = LiveText(kit)
        use_tabular_digits(self.speed)
        column.addWidget(self.speed)
        self.slow = text_label()
        set_tone(self.slow, "warn")
        self.slow.hide()
        column.addWidget(self.slow)
        row = QHBoxLayout()
        row.setSpacing(2 * kit.unit)
        self.gauge = Gauge(kit)
        row.addWidget(self.gauge)
        self.context = LiveText(kit)
        use_tabular_digits(self.context)
        row.addWidget(self.context, 1)
        column.addLayout(row)
        self._n_ctx = self._used_before = 0
        self._recent: deque[tuple[float, int]] = deque()
        self._parts: dict[str, str] = {}
        self._said = self._mean = ""
        self._begin_s = self._first_s = self._shown_s = 0.0
        self._first_tok = 0
        self._used: ContextUse | None = None
        self.set_context(0)

    def set_context(self, n_ctx: int) -> None:
        """Take the size of the context, tokens; 0 hides the gauge."""
        self._n_ctx = n_ctx
        self._used = None
        self.gauge.setVisible(n_ctx > 0)
        self.context.setVisible(n_ctx > 0)
        self._show_filled(0)

    def clear(self) -> None:
        """Forget the numbers of the last answer; what the machine does stays true."""
        self._parts = {k: v for k, v in self._parts.items() if k == "machine"}
        self.say("")

    def begin(self) -> None:
        """A message was sent."""
        self._begin_s, self._first_s = self._clock_s(), 0.0
        self._recent.clear()
        self.clear()
        self.say(self.tr("Reading the prompt…"))

    def show_start(self, event: GenerationStarted) -> None:
        """The prompt is built."""
        self._n_ctx, self._used_before = event.n_ctx, event.n_prompt
        self.gauge.show()
        self.context.show()
        self._show_filled(event.n_prompt)
        self._parts["prompt"] = self.tr("prompt {n} tokens, {reused} re-used").format(
            n=f"{event.n_prompt:,}", reused=f"{event.n_prompt_reused:,}"
        )

    def show_prompt(self, event: PromptProgress) -> None:
        """Part of the prompt was read."""
        text = self.tr("Reading the prompt: {done} of {all} tokens")
        self.say(text.format(done=f"{event.n_done:,}", all=f"{event.n_prompt:,}"))

    def show_token(self, event: TokenGenerated) -> None:
        """Show the speed so far, the first token excluded."""
        now = self._clock_s()
        if not event.n_tok:
            return
        if not self._first_s:
            self._first_s, self._first_tok = now, event.n_tok
        self._recent.append((now, event.n_tok))
        while len(self._recent) > 2 and self._recent[1][0] <= now - NOW_S:
            self._recent.popleft()
        if now - self._shown_s < SHOW_S:
            return
        self._shown_s = now
        self._show_filled(self._used_before + event.n_tok)
        mean = _speed(self._first_s, self._first_tok, now, event.n_tok)
        current = _speed(*self._recent[0], now, event.n_tok)
        self._mean = self.tr("mean {mean}").format(mean=format_tok_s(mean))
        self._parts |= {
            "now": self.tr("now {now}, mean {mean}").format(
                now=format_tok_s(current), mean=format_tok_s(mean)
            ),
            "first": self.tr("first token {ttft}").format(
                ttft=format_seconds(self._first_s - self._begin_s)
            ),
            "count": self.tr("{n} tokens").format(n=f"{event.n_tok:,}"),
        }
        self._show_parts()

    def show_end(self, event: GenerationFinished) -> None:
        """Show the engine's own timings."""
        if event.n_prompt:
            self._show_filled(event.n_prompt + event.n_gen)
        ttft = None if event.ttft_ms is None else event.ttft_ms / 1000
        self._mean = self.tr("mean {mean}").format(mean=format_tok_s(event.decode_tok_s))
        self._parts |= {
            "now": self._mean,
            "first": self.tr("first token {ttft}").format(ttft=format_seconds(ttft)),
            "prompt": self.tr("prompt {n} tokens, {reused} re-used, {speed}").format(
                n=f"{event.n_prompt:,}", reused=f"{event.n_prompt_reused:,}",
                speed=format_tok_s(event.prefill_tok_s),
            ),
            "count": self.tr("{n} tokens").format(n=f"{event.n_gen:,}"),
        }  # fmt: skip
        self._show_parts()

    def end(self) -> None:
        """The answer has ended, stopped or not: its numbers, or nothing where there are none."""
        if "now" in self._parts:
            self._parts["now"] = self._mean
            self._show_parts()
        else:
            self.say("")

    def show_vitals(self, vitals: Vitals, idle: str = "") -> None:
        """Show draw and temperature, and why the answer is slow.

        Args:
            vitals: The readings.
            idle: When an idle model is unloaded.
        """
        watts = "\u2014" if vitals.power_w is None else significant(vitals.power_w)
        heat = "\u2014" if vitals.temp_c is None else f"{vitals.temp_c:.0f}"
        machine = f"{watts}{_NBSP}W{_SEP}{heat}{_NBSP}°C"
        self._parts["machine"] = _SEP.join(p for p in (machine, idle) if p)
        if "now" in self._parts or not self._said:
            self._show_parts()
        self.show_causes(vitals.causes)

    def show_causes(self, causes: tuple[SlowCause, ...]) -> None:
        """Say why the answer is slow, or nothing."""
        said = paragraph(sentence("slow", c.code, c.data) for c in causes)
        text = self.tr("Why slow: {causes}").format(causes=said) if said else ""
        if text != self.slow.text():
            self.slow.setText(text)
            self.slow.setVisible(bool(text))

    def show_use(self, use: ContextUse) -> None:
        """Show what the context is filled with."""
        self._n_ctx, self._used = use.n_ctx, use
        self.gauge.show()
        self.context.show()
        self._show_filled(use.n_ctx - use.free_tok)

    def say(self, text: str) -> None:
        """Show ``text`` instead of a speed."""
        self._said = text
        self.speed.show_text(text)

    def _show_parts(self) -> None:
        order = ("now", "first", "prompt", "count", "machine")
        self.speed.show_text(_SEP.join(self._parts[key] for key in order if key in self._parts))

    def _show_filled(self, used: int) -> None:
        # The last token of a full context is counted, but never stored.
        used = min(used, self._n_ctx)
        text = self.tr("{used} of {all} tokens").format(used=f"{used:,}", all=f"{self._n_ctx:,}")
        if self._used is not None:
            text += ": " + self.tr(
                "system {system}, you {user}, model {model}, markers {markers}"
            ).format(
                system=f"{self._used.system_tok:,}", user=f"{self._used.user_tok:,}",
                model=f"{self._used.assistant_tok:,}", markers=f"{self._used.markers_tok:,}",
            )  # fmt: skip
        if text != self.context.text():
            self.context.show_text(text)
            self.gauge.show_parts(self._used, used, self._n_ctx)
            self.gauge.setAccessibleDescription(text)


class Gauge(QWidget):
    """A bar: what fills the context, part by part; the text beside it names the parts."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        self.setFixedSize(30 * kit.unit, 2 * kit.unit + 2)
        self.setAccessibleName(self.tr("Context in use"))
        self._parts: list[tuple[str, float]] = []
        kit.theme.changed.connect(self.update)

    def show_parts(self, use: ContextUse | None, used: int, n_ctx: int) -> None:
        """Draw the parts of ``use``, and what came since as more of the model's."""
        total = max(1, n_ctx)
        if use is None:
            self._parts = [("accent", used / total)]
        else:
            known = (
                ("muted", use.system_tok + use.markers_tok),
                ("prefill", use.user_tok),
                ("memory", use.assistant_tok),
            )
            since = max(0, used - (use.n_ctx - use.free_tok))
            self._parts = [(name, n / total) for name, n in known] + [("memory", since / total)]
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        theme = self._kit.theme
        painter.fillRect(self.rect(), theme.color("sunken"))
        x, wide = 0.0, float(self.width())
        for name, frac in self._parts:
            end = min(wide, x + frac * wide)
            painter.fillRect(QRectF(x, 0, end - x, self.height()), theme.color(name))
            x = end
        painter.setPen(theme.color("control"))
        # half a pixel in: at 150 % the edge itself is not drawn
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))


def _speed(begin_s: float, begin_tok: int, now_s: float, n_tok: int) -> float | None:
    elapsed, count = now_s - begin_s, n_tok - begin_tok
    return count / elapsed if elapsed > 0 and count > 0 else None
