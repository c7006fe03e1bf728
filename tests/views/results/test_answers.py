"""Alternatives, milliseconds, comparison and report: pure functions of a result."""

import threading
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.cli.tune_text import device_text as cli_device_text
from app.domain.errors import EnvironmentProblem
from app.domain.outcome import Outcome
from app.domain.settings import SplitMode
from app.domain.sweep import ContextPoint, Reason, SweepStatus
from app.domain.trial import Rate, TelemetryWindow
from app.domain.units import MISSING
from app.session.results import Recheck
from tests.fakes import window_data as data
from views.results.alternatives import alternatives
from views.results.compare import column_names, compare_rows, compare_text
from views.results.milliseconds import token_parts
from views.results.recheck import recheck_text, recheck_tone
from views.results.report import file_stem, report_html, write_report
from views.results.result_view import ResultView
from views.results.text import device_text, setting_rows, setting_text
from views.widgets import Kit

RESULT = data.result()


def test_parts_add_up_to_the_token() -> None:
    """Weights, RAM layers and context must be the measured time, the fitted part marked."""
    reason = Reason(code="ram_share", data={"share_pct": 25, "n_ram_layers": 1})
    result = msgspec.structs.replace(RESULT, reasons=(reason,))
    parts = token_parts(result)
    assert result.recommended is not None
    assert result.recommended.decode_tok_s is not None
    whole = 1000 / result.recommended.decode_tok_s.median
    assert sum(p.ms for p in parts) == pytest.approx(whole)
    assert [p.is_estimated for p in parts] == [True, True, False]
    context = whole - 1000 / 42.6
    assert parts[2].ms == pytest.approx(context)


def test_no_speed_no_parts() -> None:
    """A search that measured nothing has no milliseconds."""
    empty = data.result(SweepStatus.CANCELLED, 0)
    assert token_parts(empty) == ()
    assert alternatives(empty) == ()


def test_alternatives_are_what_was_measured() -> None:
    """A longer context and a calmer configuration of this search must be offered."""
    longer = ContextPoint(
        n_ctx=16384, depth=16000, fits=True, meets_floor=True,
        decode_tok_s=Rate(median=30.0, low=29.0, high=31.0),
    )  # fmt: skip
    trials = list(RESULT.trials)
    for index, power_w in ((0, 80.0), (4, 60.0)):
        window = TelemetryWindow(n_samples=9, power_w={"GPU-1": power_w})
        trials[index] = msgspec.structs.replace(trials[index], telemetry=window)
    result = msgspec.structs.replace(
        RESULT, trials=tuple(trials), context_curve=(*RESULT.context_curve, longer)
    )
    found = {a.what: a for a in alternatives(result)}
    assert set(found) == {"longer", "quieter"}
    assert found["longer"].settings.n_ctx == 16384
    assert "60.0 W instead of 80.0 W" in found["quieter"].text


def test_columns_of_one_model_are_told_apart_by_their_times() -> None:
    """A long model name, twice, would leave no room for what differs."""
    names = ("Qwen · 2026-01-12 18:20", "Qwen · 2026-01-11 09:02")
    assert column_names(*names) == ("2026-01-12 18:20", "2026-01-11 09:02")
    assert column_names(names[0], "Gemma · 2026-01-11 09:02")[0] == names[0]


def test_slower_than_the_floor_is_no_alternative() -> None:
    """A longer context that misses the user's floor must not be offered."""
    slow = ContextPoint(
        n_ctx=16384, depth=16000, fits=True, meets_floor=False,
        decode_tok_s=Rate(median=3.0, low=2.9, high=3.1),
    )  # fmt: skip
    assert alternatives(msgspec.structs.replace(RESULT, context_curve=(slow,))) == ()


def test_comparison_names_the_faster_only_outside_noise() -> None:
    """Overlapping intervals are no difference."""
    assert "less than measurements scatter" in compare_text(("A", RESULT), ("B", RESULT))
    knee = msgspec.structs.replace(RESULT, recommended=RESULT.knee)
    assert compare_text(("A", RESULT), ("B", knee)).startswith("A decodes 9\u00a0%")
    rows = compare_rows(RESULT.recommended, RESULT.knee)
    layers = next(row for row in rows if row[0] == "GPU layers")
    assert layers[1:] == ("28", "27", "differs")
    assert rows.index(layers) == 4
    assert "has no speed" in compare_text(("A", RESULT), ("B", data.result(n_trials=0)))


@pytest.mark.parametrize(
    ("now", "outside", "text", "tone"),
    [
        (38.9, True, "Was 41.2, now 38.9 tok/s: −6\u00a0%, outside noise.", "warn"),
        (41.3, False, "Was 41.2, now 41.3 tok/s: +0\u00a0%, within noise.", "good"),
        (45.0, True, "Was 41.2, now 45.0 tok/s: +9\u00a0%, outside noise.", "good"),
        (None, False, "Was 41.2 tok/s; now it did not run: out of memory.", "bad"),
    ],
)
def test_recheck_in_one_sentence(now: float | None, outside: bool, text: str, tone: str) -> None:
    """Old, new, difference and whether it counts must be in the sentence."""
    before = Rate(median=41.2, low=41.0, high=41.4)
    found = Recheck(
        sweep_id=1, before=before,
        now=None if now is None else Rate(median=now, low=now, high=now),
        outcome=Outcome.OUT_OF_MEMORY if now is None else Outcome.OK,
        difference_frac=None if now is None else now / 41.2 - 1, is_outside_noise=outside,
    )  # fmt: skip
    assert recheck_text(found) == text
    assert recheck_tone(found) == tone


def test_report_holds_everything_and_nothing_from_outside(tmp_path: Path) -> None:
    """Every trial and reason must be in it; names are escaped; no link leads anywhere."""
    html = report_html(RESULT, "<b>Qwen & Co</b>")
    assert "&lt;b&gt;Qwen &amp; Co&lt;/b&gt;" in html
    assert html.count("<tr>") > len(RESULT.trials)
    assert "http" not in html
    for name, start in (("a.html", b"<!DOCTYPE"), ("a.PDF", b"%PDF-")):
        path = tmp_path / name
        assert write_report(str(path), html) == str(path)
        assert path.read_bytes().startswith(start)
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        write_report(str(tmp_path / "a.html" / "b.html"), html)


def test_long_report_is_printed_on_a_thread(tmp_path: Path, qapp: QApplication) -> None:
    """The window prints beside itself; Qt must not miss timers there (a warning is a failure)."""
    html = report_html(msgspec.structs.replace(RESULT, trials=RESULT.trials * 50), "Qwen")
    path = tmp_path / "long.pdf"
    thread = threading.Thread(target=write_report, args=(str(path), html))
    thread.start()
    thread.join()
    assert path.read_bytes().startswith(b"%PDF-")


def test_one_point_is_no_curve(kit: Kit, qtbot: QtBot) -> None:
    """A search that measured one depth only must not draw a curve of it."""
    view = ResultView(kit)
    qtbot.addWidget(view)
    view.show_result(RESULT, "Qwen")
    assert not view._plots[1].isHidden()
    deep = RESULT.context_curve[:1]
    view.show_result(msgspec.structs.replace(RESULT, context_curve=deep, trials=()), "Qwen")
    assert view._plots[1].isHidden()


@pytest.mark.parametrize("model", ["Qwen 2.5/7B: 'x'", "模型", "", "a" * 300, "../..", "CON<>|"])
def test_file_name_works_everywhere(model: str) -> None:
    """A model's name must become a file name on any system."""
    stem = file_stem(model)
    assert stem.startswith("rigtune-")
    assert len(stem) <= 90
    assert not set(stem) & set('/\\:*?"<>| ')


def test_no_setting_is_shown_as_nothing() -> None:
    """What was left to llama.cpp must say so instead of an empty cell or a zero."""
    shown = {name: value for _, value, name in setting_rows(data.settings(28))}
    assert all(shown.values())
    assert shown["override_tensor"] == "none"
    assert shown["n_threads_batch"] == "as in decode"
    assert shown["tensor_split"] == "by free memory"
    assert shown["split_mode"] == "whole layers one after the other (layer)"
    assert shown["type_k"] == "f16"
    on_cpu = msgspec.structs.replace(data.settings(0), devices=())
    assert setting_text(on_cpu, "devices") == "none: CPU only"


def test_memory_that_nobody_counted_is_not_ram() -> None:
    """Devices that share each layer hold the model, though llama.cpp does not say how much."""
    assert RESULT.recommended is not None
    point = msgspec.structs.replace(RESULT.recommended, device_bytes={})
    shared = msgspec.structs.replace(point.settings, split_mode=SplitMode.TENSOR)
    divided = msgspec.structs.replace(point, settings=shared)
    for text in (device_text(divided), cli_device_text(divided)):
        assert text.startswith(MISSING)
        assert "RAM only" not in text
    in_ram = msgspec.structs.replace(shared, devices=())
    assert device_text(msgspec.structs.replace(point, settings=in_ram)) == "RAM only"
