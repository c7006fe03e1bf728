"""`estimate` and `inspect` as a script and a person see them."""

import json
from pathlib import Path

import pytest

from app.cli.estimate import inverse_lines
from app.cli.main import run
from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.domain.settings import Settings
from app.domain.units import GIB, MIB
from app.session import Estimate, IfClosed, Remedy
from tests.fakes.models import make_model
from tests.fakes.recorded import MACHINES, RecordedMachine

ASLEEP = ("--engine-dir", "no-such-folder")  # an engine that was started would fail
CARD = DeviceMemory(
    device="CUDA0", total_bytes=GIB, driver_context_bytes=530 * MIB, growth_bytes=250 * MIB
)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    return str(make_model(tmp_path / "tiny.gguf", "qwen3moe"))


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run([*argv, *ASLEEP], RecordedMachine("hybrid-asleep"))
    return code, capsys.readouterr().out


def estimated(*parts: DeviceMemory, **changes: object) -> Estimate:
    estimate = MemoryEstimate(
        devices=parts, source=MemorySource.FORMULA, verdict=Verdict.DOES_NOT_FIT
    )
    fields: dict[str, object] = {
        "settings": Settings(n_gpu_layers=9), "estimate": estimate, "max_n_gpu_layers": None,
        "max_n_ctx": None,
    }  # fmt: skip
    return Estimate(**(fields | changes))  # type: ignore[arg-type]


def test_json_answers_every_question(capsys: pytest.CaptureFixture[str], tiny: str) -> None:
    """One document with all parts per device, the inverse questions and the reserve."""
    code, out = answer(capsys, "estimate", tiny, "--json", "--reserve", "600")
    document = json.loads(out)
    assert (code, document["schema"]) == (0, "rigtune.estimate/1")
    assert {
        "max_n_gpu_layers", "max_n_ctx", "min_n_cpu_moe", "cheapest_kv", "next_layer_bytes",
        "if_closed", "source", "elapsed_ms",
    } < set(document)  # fmt: skip
    gpu, host = document["devices"]
    assert (gpu["reserve_bytes"], host["reserve_bytes"]) == (600 << 20, 0)
    assert (gpu["free_bytes"], gpu["reason"]) == (None, "asleep")
    assert set(gpu) >= {f"{part}_bytes" for part in ("weights", "kv_cache", "driver_context")}


def test_a_person_sees_a_table_and_bars(capsys: pytest.CaptureFixture[str], tiny: str) -> None:
    """Figures, bars with a legend, and the reason for what is not known."""
    code, out = answer(capsys, "estimate", tiny)
    assert code == 0
    assert "W weights" in out
    assert "— (asleep)" in out
    assert "sleeps and stays asleep" in out


@pytest.mark.parametrize("option", ["--reserve", "--headroom"])
@pytest.mark.parametrize("value", ["-1", "9999999999999"])
def test_sizes_that_are_none_are_usage_errors(
    capsys: pytest.CaptureFixture[str], tiny: str, option: str, value: str
) -> None:
    """Negative and impossible MiB end with exit code 2."""
    code, out = answer(capsys, "estimate", tiny, "--json", f"{option}={value}")
    assert (code, json.loads(out)["error"]["code"]) == (2, "bad_setting")


def test_a_refused_context_says_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """No figures for a context the engine would not create, but the reason."""
    path = make_model(tmp_path / "mla.gguf", "deepseek2")
    code, out = answer(capsys, "estimate", str(path), "--type-k", "q8_0", "--json")
    document = json.loads(out)
    assert (code, document["devices"], document["verdict"]) == (0, [], "does_not_fit")
    assert "same type" in document["note"]


def test_inspect_asks_no_machine(capsys: pytest.CaptureFixture[str], tiny: str) -> None:
    """A model's own figures need neither probes nor engine."""
    code, out = answer(capsys, "inspect", tiny, "--json")
    assert (code, json.loads(out)["arch"]) == (0, "qwen3moe")


def test_each_inverse_question_has_its_line() -> None:
    """Layers, next layer, context, experts, cache type, remedies, and programs to close."""
    closed = IfClosed(
        device="CUDA0", pid=7, name="game\x1b[31m", vram_bytes=3 * GIB, verdict=Verdict.FITS,
        max_n_gpu_layers=33, max_n_ctx=32768,
    )  # fmt: skip
    remedy = Remedy(
        knob="n_ubatch", value="512", saved_bytes=700 * MIB, verdict=Verdict.TIGHT,
        max_n_gpu_layers=24,
    )  # fmt: skip
    lines = inverse_lines(
        estimated(
            CARD, max_n_gpu_layers=20, max_n_ctx=8192, min_n_cpu_moe=4, cheapest_kv="q8_0",
            next_layer_bytes=157 * MIB, remedies=(remedy,), if_closed=(closed,),
        )
    )  # fmt: skip
    assert [line.rsplit(": ", 1)[1] for line in lines[:5]] == [
        "20", "157\u00a0MiB", "8,192 tokens", "4", "q8_0",
    ]  # fmt: skip
    assert lines[5] == "With n_ubatch 512: 700\u00a0MiB less, at most 24 layers, tight"
    assert lines[6].endswith("fits, at most 33 layers, up to 32,768 tokens")
    assert "\x1b" not in lines[6]


def test_a_split_and_a_cache_in_ram_are_estimated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two cards of a recorded machine: the split decides who holds what, RAM has the cache."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    model = str(make_model(tmp_path / "tiny.gguf", "llama"))
    recorded = ("--replay", str(MACHINES / "two-nvidia"))
    weights = {}
    for split in ("1,0", "0,1"):
        options = ("--tensor-split", split, "--offload-kqv", "off", "--json")
        code = run([*recorded, "estimate", model, *options], RecordedMachine("no-gpu"))
        assert code == 0
        first, second, host = json.loads(capsys.readouterr().out)["devices"]
        assert first["kv_cache_bytes"] == second["kv_cache_bytes"] == 0
        assert host["kv_cache_bytes"] > 0
        weights[split] = first["weights_bytes"], second["weights_bytes"]
    assert weights["1,0"] == weights["0,1"][::-1]
    assert 0 in weights["1,0"]
