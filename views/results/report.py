"""A result as a document to print: PDF, or a web page without anything from outside."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from PySide6.QtCore import QBuffer, QEventLoop, QIODevice, QMarginsF
from PySide6.QtGui import QPageLayout, QPageSize, QPdfWriter, QTextDocument

from app.domain.sweep import SweepResult
from app.domain.trial import Trial
from app.domain.units import format_seconds
from app.runtime import atomic_write
from views.plots.sweep_data import context_points, settings_of, speed_of
from views.results.text import (
    device_text,
    gain_text,
    points_of,
    reason_text,
    setting_rows,
    translate,
)
from views.words import (
    differing_texts,
    number,
    outcome_label,
    rate_text,
    settings_text,
    status_label,
)

# One style for screen and paper; Qt's own rich text knows no more than this.
_STYLE = """
body { font-family: sans-serif; font-size: 10pt; }
h1 { font-size: 16pt; } h2 { font-size: 12pt; }
td, th { padding: 2px 8px; text-align: left; }
th { border-bottom: 1px solid gray; }
"""


def report_html(result: SweepResult, model: str) -> str:
    """Return the whole answer, with every trial, as one self-contained page."""
    parts = [f"<h1>RigTune: {escape(model)}</h1>", _status(result)]
    best = result.recommended
    if best is not None:
        parts += [
            _h2(translate("Report", "Recommended")),
            _p(settings_text(best.settings)),
            _p(gain_text(result)),
        ]
        parts += [_comparison(result), _reasons(result)]
        labels = (translate("Report", "Setting"), "llama.cpp", translate("Report", "Value"))
        rows = [(label, name, value) for label, value, name in setting_rows(best.settings)]
        parts += [_h2(translate("Report", "All settings")), _table(labels, rows)]
    parts += [_context(result), _trials(result.trials)]
    body = "\n".join(part for part in parts if part)
    title = escape(f"RigTune: {model}")
    return (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def write_report(path: str, html: str) -> str:
    """Write ``html`` to ``path``, as PDF where that ends in ``.pdf``; runs on a thread.

    Raises:
        EnvironmentProblem: It could not be written.
    """
    data = _pdf(html) if path.lower().endswith(".pdf") else html.encode("utf-8")
    atomic_write(Path(path), data)
    return path


def file_stem(model: str) -> str:
    """Return ``model`` as part of a file name, on any system."""
    return "rigtune-" + (re.sub(r"[^\w.-]+", "-", model).strip("-.")[:80] or "result")


def _pdf(html: str) -> bytes:
    loop = QEventLoop()  # a long document is laid out by timers, which a thread has none of
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
    writer.setPageMargins(QMarginsF(15, 15, 15, 15), QPageLayout.Unit.Millimeter)
    document = QTextDocument()
    document.setHtml(html)
    document.print_(writer)
    buffer.close()
    del loop
    return bytes(buffer.data().data())


def _p(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""


def _h2(text: str) -> str:
    return f"<h2>{escape(text)}</h2>"


def _status(result: SweepResult) -> str:
    text = translate("Report", "Search {status}: trials {n}, loads {loads}, {time}")
    return _p(
        text.format(
            status=status_label(result.status), n=len(result.trials), loads=result.n_model_loads,
            time=format_seconds(result.virtual_s or result.measured_s),
        )
    )  # fmt: skip


def _table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in headers)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _comparison(result: SweepResult) -> str:
    headers = (
        "", translate("Report", "Decode tok/s"), translate("Report", "Prefill tok/s"),
        translate("Report", "Request"), translate("Report", "Memory"),
    )  # fmt: skip
    rows = [
        (name, rate_text(p.decode_tok_s), rate_text(p.prefill_tok_s), format_seconds(p.request_s),
         device_text(p))
        for name, p in points_of(result)
    ]  # fmt: skip
    return _table(headers, rows)


def _reasons(result: SweepResult) -> str:
    items = "".join(f"<li>{escape(reason_text(reason))}</li>" for reason in result.reasons)
    return _h2(translate("Report", "Why")) + f"<ul>{items}</ul>" if items else ""


def _context(result: SweepResult) -> str:
    rows = [(number(x), rate_text(r)) for x, r in context_points(result)]
    if not rows:
        return ""
    headers = (translate("Report", "Tokens in context"), translate("Report", "Decode tok/s"))
    title = translate("Report", "Speed as the context fills")
    return _h2(title) + _table(headers, list(rows))


def _trials(trials: tuple[Trial, ...]) -> str:
    if not trials:
        return ""
    texts = differing_texts([settings_of(trial) for trial in trials])
    rows = [
        (str(i), text, number(t.request.workload.depth), outcome_label(t.outcome),
         rate_text(speed_of(t, "prefill")), rate_text(speed_of(t, "decode")))
        for i, (text, t) in enumerate(zip(texts, trials, strict=True), 1)
    ]  # fmt: skip
    headers = (
        "#", translate("Report", "Settings"), translate("Report", "Depth"),
        translate("Report", "Outcome"), translate("Report", "Prefill tok/s"),
        translate("Report", "Decode tok/s"),
    )  # fmt: skip
    return _h2(translate("Report", "Trials")) + _table(headers, rows)
