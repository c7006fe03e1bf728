"""How fast the answer comes and how full the context is."""

import time

from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QWidget

from app.domain.events import GenerationFinished, TokenGenerated
from app.domain.units import format_seconds, format_tok_s
from views.theme import use_tabular_digits
from views.widgets.basics import Kit, text_label


class Meter(QWidget):
    """A line of numbers and the context gauge."""

    def __init__(self, kit: Kit) -> None:
        """Start without numbers."""
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(3 * kit.unit)
        self._speed = text_label(muted=True)
        use_tabular_digits(self._speed)
        row.addWidget(self._speed, 1)
        self._context = text_label(muted=True, wrap=False)
        row.addWidget(self._context)
        self._gauge = QProgressBar()
        self._gauge.setTextVisible(False)
        self._gauge.setFixedWidth(30 * kit.unit)
        self._gauge.setAccessibleName(self.tr("Context in use"))
        row.addWidget(self._gauge)
        self._n_ctx = 0
        self._used = self._used_before = 0
        self._begin_s = self._first_s = 0.0
        self._first_tok = 0
        self.set_context(0)

    def set_context(self, n_ctx: int) -> None:
        """Take the size of the context, tokens; 0 hides the gauge."""
        self._n_ctx = n_ctx
        self._gauge.setVisible(n_ctx > 0)
        self._context.setVisible(n_ctx > 0)
        self._show_used(0)

    def begin(self) -> None:
        """A message was sent."""
        self._used_before = self._used
        self._begin_s, self._first_s = time.perf_counter(), 0.0
        self._speed.setText(self.tr("Reading the prompt…"))

    def show_token(self, event: TokenGenerated) -> None:
        """Show the speed so far, the first token excluded."""
        self._show_used(self._used_before + event.n_tok)
        now = time.perf_counter()
        if not self._first_s:
            self._first_s, self._first_tok = now, event.n_tok
        elapsed = now - self._first_s
        count = event.n_tok - self._first_tok
        speed = count / elapsed if elapsed > 0 and count > 0 else None
        self._speed.setText(
            self.tr("{speed} · first token after {ttft}").format(
                speed=format_tok_s(speed), ttft=format_seconds(self._first_s - self._begin_s)
            )
        )

    def show_end(self, event: GenerationFinished) -> str:
        """Show the measured timings and return them."""
        self._show_used(event.n_prompt + event.n_gen)
        ttft = None if event.ttft_ms is None else event.ttft_ms / 1000
        text = self.tr(
            "{decode} · first token {ttft} · prompt {n} tokens, {prefill}"
        ).format(
            decode=format_tok_s(event.decode_tok_s), ttft=format_seconds(ttft), n=event.n_prompt,
            prefill=format_tok_s(event.prefill_tok_s),
        )  # fmt: skip
        self._speed.setText(text)
        return self.tr("{n} tokens, {speed}").format(
            n=event.n_gen, speed=format_tok_s(event.decode_tok_s)
        )

    def say(self, text: str) -> None:
        """Show ``text`` instead of a speed."""
        self._speed.setText(text)

    def _show_used(self, used: int) -> None:
        # The last token of a full context is counted, but never stored.
        self._used = used = min(used, self._n_ctx)
        self._gauge.setRange(0, max(1, self._n_ctx))
        self._gauge.setValue(used)
        text = self.tr("{used} of {all} tokens").format(used=f"{used:,}", all=f"{self._n_ctx:,}")
        self._context.setText(text)
        self._gauge.setAccessibleDescription(text)
