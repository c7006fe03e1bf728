"""The GPU benchmark's parts that need no card: every figure is there, and the page is filled in."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Import the program as it runs: its own folder first on the path."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(_ROOT / "benchmarks/gpu"), *sys.path])
    return importlib.import_module("measure")


def test_every_figure_has_code_and_a_place_on_the_page(measure: ModuleType) -> None:
    """A figure of the table must exist as a function, and docs/benchmarks.md must show it."""
    page = (_ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    for name, figure in measure.FIGURES.items():
        assert callable(getattr(importlib.import_module(figure.module), figure.function))
        assert f"<!-- figure: {name} -->" in page


def test_the_page_shows_a_run_and_never_a_rehearsal(
    measure: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """report.py replaces the block of a measured figure only, and refuses tiny models."""
    report = importlib.import_module("report")
    page = tmp_path / "page.md"
    page.write_text("# B\n<!-- figure: chat -->\nold\n<!-- end -->\ntext\n", encoding="utf-8")
    pairs = [{"bare": {"decode_tok_s": 250.0}}]
    ratio = {"decode_tok_s": {"median": 0.99}, "arriving_tok_s": {"median": 0.98}}
    found = {
        "tiny": False, "status": "complete", "seconds": 9.0, "began_utc": "2026-01-02T00:00:00",
        "card": {"name": "Some Card", "driver": "1"}, "greedy": {"pairs": pairs, "ratio": ratio},
    }  # fmt: skip
    (tmp_path / "chat.json").write_text(json.dumps(found), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["report.py", str(tmp_path), "--page", str(page)])
    assert report.main() == 0
    text = page.read_text(encoding="utf-8")
    assert "| greedy | 250 | 0.99 | 0.98 |" in text
    assert "Some Card" in text
    assert "old" not in text
    assert text.endswith("<!-- end -->\ntext\n")
    (tmp_path / "chat.json").write_text(json.dumps({**found, "tiny": True}), encoding="utf-8")
    with pytest.raises(SystemExit, match="rehearsal"):
        report.main()
