"""``rigtune bench`` as people type it."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.main import run
from app.cli.output import EXIT_DONE, EXIT_USAGE
from probes import registry
from tests.fakes.models import make_model

pytestmark = pytest.mark.engine

SHORT = ("--n-prompt", "16", "--n-gen", "8", "--reps", "2")


def bench(capsysbinary: pytest.CaptureFixture[bytes], *argv: str) -> tuple[int, Any]:
    code = run(["bench", *argv, "--json"], registry)
    return code, json.loads(capsysbinary.readouterr().out)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    return str(make_model(tmp_path / "tiny.gguf", "llama"))


def test_parallel_sequences_run_together(
    model: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Four sequences get four slots; the document names samples, build and power."""
    code, document = bench(capsysbinary, model, "--parallel", "4", *SHORT)
    assert code == EXIT_DONE, document
    assert document["trial"]["settings"]["n_seq_max"] == 4
    assert len(document["trial"]["decode_samples"]) == 2
    assert document["engine"]["llama_version"]
    assert document["power"]["source"] in {"ac", "battery", "unknown"}


@pytest.mark.parametrize(
    "argv",
    [
        ("--parallel", "0"),
        ("--n-prompt", "0"),
        ("--depth", "-1"),
        ("--n-ctx", "256", "--n-prompt", "300"),
        ("--n-gpu-layers", "99"),
        ("--type-v", "q8_0", "--flash-attn", "off"),
    ],
)
def test_impossible_benches_are_usage_errors(
    model: str, argv: tuple[str, ...], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Refused with a sentence before anything is loaded."""
    code, document = bench(capsysbinary, model, *argv)
    assert code == EXIT_USAGE
    assert document["error"]["message"]


@pytest.mark.parametrize("option", ["--n-prompt", "--n-gen", "--depth", "--reps", "--parallel"])
def test_absurd_counts_are_usage_errors(
    model: str, capsysbinary: pytest.CaptureFixture[bytes], option: str
) -> None:
    """A count nobody can wait for is refused at once; it ran without an end."""
    code, document = bench(capsysbinary, model, option, "99999999999999999999")
    assert code == EXIT_USAGE
    assert "above" in document["error"]["message"]
