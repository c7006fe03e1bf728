"""``rigtune tune`` as people type it: one JSON document, and sentences for what makes no sense."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.main import run
from app.cli.output import EXIT_DONE, EXIT_PROBLEM, EXIT_USAGE
from probes import registry

REPLAYS = Path(__file__).parents[2] / "golden" / "replays"


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    path = tmp_path / "partial.json"
    path.write_bytes(gzip.decompress((REPLAYS / "partial_33.json.gz").read_bytes()))
    return str(path)


def tune(capsysbinary: pytest.CaptureFixture[bytes], *argv: str) -> tuple[int, Any]:
    code = run(["tune", *argv, "--json", "--progress", "none"], registry)
    return code, json.loads(capsysbinary.readouterr().out)


def test_a_replay_and_a_command_are_one_document(
    replay: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The answer, and the user's command beside it, without model and engine."""
    command = "llama-server -m x.gguf -ngl 12 -c 4096 -np 1 --temp 0"
    code, document = tune(capsysbinary, "--replay", replay, "--check", command)
    assert code == EXIT_DONE
    assert document["schema"] == "rigtune.tune/1"
    assert document["engine"] is None
    assert document["check"]["verdict"] == "slower"
    assert document["check"]["theirs"]["settings"]["n_gpu_layers"] == 12
    assert document["check"]["ignored"] == ["--temp"]


def test_the_command_is_shown_to_people(replay: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Both sides, what differs, and what could not be represented."""
    command = "llama-server -ngl 12 -c 4096 -np 1 -nkvo --lora style.gguf"
    argv = ["tune", "--replay", replay, "--check", command, "--progress", "none"]
    assert run(argv, registry) == EXIT_DONE
    said = capsys.readouterr().out
    assert "longer with your command" in said
    assert "n_gpu_layers: yours 12" in said
    assert "offload_kqv: yours off" in said
    assert "cannot be represented" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_ubatch", "256"), ("n_batch", "1024"), ("n_threads", "4"), ("flash_attn", "on"),
        ("type_k", "f16"), ("type_v", "f16"), ("load_mode", "mmap"), ("n_gpu_layers", "7"),
        ("n_ctx", "16384"),
    ],
)  # fmt: skip
def test_every_pin_is_kept(
    replay: str, name: str, value: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A pinned setting is in the recommendation and in no trial with another value."""
    code, document = tune(capsysbinary, "--replay", replay, "--pin", f"{name}={value}")
    assert code == EXIT_DONE, document
    assert str(document["recommended"]["settings"][name]) == value
    searched = [t for t in document["trials"] if t["stage"] not in ("auto_fit", "cpu", "probe")]
    found = {str(t["settings"][name]) for t in searched}
    assert found <= {value, "0"} if name == "n_gpu_layers" else found == {value}


@pytest.mark.parametrize(
    "pin",
    [
        "n_gpu_layers=34", "n_gpu_layers=-1", "n_ctx=5", "n_batch=abc", "n_ubatch=99999",
        "flash_attn=maybe", "type_k=q3_k", "n_threads=0", "load_mode=mlock", "devices=x",
        "speed=9", "n_seq_max=0", "n_cpu_moe=99", "n_ubatch",
    ],
)  # fmt: skip
def test_impossible_pins_are_usage_errors(
    replay: str, pin: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Refused with what is wrong, before anything is measured."""
    code, document = tune(capsysbinary, "--replay", replay, "--pin", pin)
    assert code == EXIT_USAGE
    assert document["error"]["message"]


def test_a_headroom_that_leaves_nothing_is_refused(
    replay: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Which constraint binds and how much there is, not an answer for the CPU alone."""
    code, document = tune(capsysbinary, "--replay", replay, "--headroom", "9000")
    assert code == EXIT_USAGE
    assert document["error"]["code"] == "headroom_too_large"
    assert "5.9" in document["error"]["message"]


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        ((), "no_model"),
        (("--check", "llama-server -ngl 3"), "no_model"),
        (("--check", "ollama run x"), "not_a_command"),
        (("a.gguf", "b.gguf", "--record", "f.json"), "several_models"),
        (("a.gguf", "b.gguf", "--check", "llama-server"), "several_models"),
        (("a.gguf", "--draft", "mtp"), "mtp_not_in_engine"),
        (("a.gguf", "--floor", "nan"), "bad_setting"),
        (("a.gguf", "--n-ctx", "0"), "bad_setting"),
        (("a.gguf", "--headroom", "-1"), "bad_setting"),
        (("a.gguf", "--kv-types", "f16,q9"), "bad_kv_type"),
        (("a.gguf", "--goal", "win"), "usage"),
        (("--replay", "x", "--record", "y"), "not_with_replay"),
        (("--replay", "x", "--draft", "lookup"), "not_with_replay"),
        (("--replay", "x", "--resume"), "not_with_replay"),
        (("--replay", "x", "--caps"), "not_with_replay"),
        (("--replay", "x", "--rpc", "127.0.0.1:1"), "not_with_replay"),
        (("--replay", "x", "--engine-dir", "y"), "not_with_replay"),
        (("demo", "--replay", "x"), "not_with_replay"),
        (("a.gguf", "b.gguf", "--replay", "x"), "not_with_replay"),
        (("a.gguf", "--replay-seed", "3"), "not_a_replay"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    argv: tuple[str, ...],
    code: str,
    capsysbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One JSON document with a code, exit code 2, and nothing started."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))
    status, document = tune(capsysbinary, *argv)
    assert status == EXIT_USAGE
    assert document["error"]["code"] == code


@pytest.mark.engine
def test_models_that_cannot_be_used_end_no_comparison(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each broken file is named in the one document; with no answer at all the code says so."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    (tmp_path / "bad.gguf").write_bytes(b"GGUF but not really")
    names = [str(tmp_path / "bad.gguf"), str(tmp_path / "gone.gguf")]
    code, document = tune(capsysbinary, *names)
    assert code == EXIT_PROBLEM
    assert document["schema"] == "rigtune.quants/1"
    assert [m["model"] for m in document["models"]] == names
    assert all(m["error"]["message"] for m in document["models"])
    assert document["best"] is None
