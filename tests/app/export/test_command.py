"""Command lines people run, read into our words."""

import json
from pathlib import Path

import pytest

from app.domain.errors import UsageProblem
from app.domain.settings import SETTINGS
from app.export import export, read_command
from app.export.command import _FLAGS
from tests.fakes.profiles import PROFILE

KNOWN = json.loads((Path(__file__).parents[2] / "golden" / "llama_flags.json").read_bytes())

SPELLINGS = {
    "-ngl 99": {"n_gpu_layers": "99"},
    "--n-gpu-layers=12": {"n_gpu_layers": "12"},
    "--gpu_layers all": {"n_gpu_layers": "all"},
    "-ngl -1": {"n_gpu_layers": "-1"},
    "-ngl 10 -ngl 20": {"n_gpu_layers": "20"},
    "-c 0 -b 1024 -ub=256": {"n_ctx": "0", "n_batch": "1024", "n_ubatch": "256"},
    "-fa": {"flash_attn": "on"},
    "-fa --mlock": {"flash_attn": "on", "load_mode": "mlock"},
    "-fa 1": {"flash_attn": "on"},
    "--flash-attn OFF": {"flash_attn": "off"},
    "-fa auto": {"flash_attn": "auto"},
    "-ctk Q8_0 -ctv q4_0": {"type_k": "q8_0", "type_v": "q4_0"},
    "-t 6 -tb 12": {"n_threads": "6", "n_threads_batch": "12"},
    "--no-mmap": {"load_mode": "none"},
    "-np 2 --device CUDA0,CUDA1": {"n_seq_max": "2", "devices": "CUDA0,CUDA1"},
    "-cmoe": {"n_cpu_moe": "all"},
    "--n-cpu-moe 8": {"n_cpu_moe": "8"},
    '-ot "blk\\.[0-3]\\.ffn_.*=CPU" -ot exps=CPU': {
        "override_tensor": "blk\\.[0-3]\\.ffn_.*=CPU,exps=CPU"
    },
    "-nkvo --fit off": {"offload_kqv": "off", "fit": "off"},
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_short_and_long_spellings(text: str) -> None:
    """Every spelling of a flag, its value behind a space or an equals sign."""
    assert read_command(f"llama-server {text}").options == SPELLINGS[text]


def test_how_devices_share_is_read_from_variables_too() -> None:
    """llama-server takes each of its flags from the environment; these decide what is measured."""
    shared = "LLAMA_ARG_SPLIT_MODE=row LLAMA_ARG_TENSOR_SPLIT=3,1 LLAMA_ARG_MAIN_GPU=1"
    command = read_command(f"{shared} LLAMA_ARG_LOAD_MODE=none llama-server -m a.gguf -sm layer")
    assert command.variables == {}
    assert command.options == {
        "model": "a.gguf", "split_mode": "layer", "tensor_split": "3,1", "main_gpu": "1",
        "load_mode": "none",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("llama-server -m 'my model.gguf'", "my model.gguf"),
        ('llama-server -m "C:\\\\new\\\\x.gguf"', "C:\\\\new\\\\x.gguf"),
        (".\\llama-server.exe -m C:\\models\\new.gguf ^\r\n -ngl 1", "C:\\models\\new.gguf"),
        ("llama-server \\\n  -m a.gguf \\\n  -ngl 1 > log.txt 2>&1 &", "a.gguf"),
        ("LLAMA_ARG_MODEL=a.gguf sudo ./build/bin/llama-server", "a.gguf"),
        ("docker run -v /m:/m ghcr.io/ggml-org/llama.cpp:server -m /m/a.gguf", "/m/a.gguf"),
        ("-m llama-3.gguf -ngl 5", "llama-3.gguf"),
    ],
)
def test_words_as_the_shell_splits_them(text: str, model: str) -> None:
    """Quotes, line continuations of three shells, redirections, and what stands before it."""
    assert read_command(text).options["model"] == model


def test_what_plays_no_part_is_named() -> None:
    """Flags that change neither speed nor memory, or that nobody knows, are kept by name."""
    command = read_command("CUDA_VISIBLE_DEVICES=1 llama-server --temp 0.7 --nonsense x -ngl 3")
    assert command.ignored == ("--temp", "--nonsense")
    assert command.variables == {"CUDA_VISIBLE_DEVICES": "1"}
    assert command.options == {"n_gpu_layers": "3"}


def test_switches_of_llama_bench_have_values() -> None:
    """There ``--mmap 0`` means no mapping, and ``-nkvo 0`` the usual cache."""
    options = read_command("llama-bench -m a.gguf --mmap 0 -fa 1 -nkvo 0").options
    assert options["load_mode"] == "none"
    assert options["offload_kqv"] == "on"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "not_a_command"),
        ("ollama run gemma", "not_a_command"),
        ("llama-server -m", "flag_without_value"),
        ("llama-server -ngl --mlock", "flag_without_value"),
        ('llama-server -m "a.gguf', "bad_quoting"),
    ],
)
def test_no_command_line(text: str, code: str) -> None:
    """What cannot be read is refused with a sentence."""
    with pytest.raises(UsageProblem) as caught:
        read_command(text)
    assert caught.value.info.code == code


def test_flags_are_llama_cpp_s_own() -> None:
    """Every long flag of the table is one that llama-server parses, or did before --load-mode."""
    older = {"--mmap", "--no-mmap", "--mlock", "--direct-io", "--no-direct-io"}
    known = {*KNOWN["llama-server"], *KNOWN["llama-bench"], *older}
    assert {flag for flag in _FLAGS if flag.startswith("--")} <= known


@pytest.mark.parametrize("windows", [False, True])
def test_our_own_export_reads_back(windows: bool) -> None:
    """Every setting of an exported command comes back with its value."""
    options = read_command(export(PROFILE, "llama-server", windows=windows)).options
    for info in SETTINGS:
        value = getattr(PROFILE.settings, info.name)
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        assert options[info.name] == text, info.name
    assert options["model"] == PROFILE.model_path
