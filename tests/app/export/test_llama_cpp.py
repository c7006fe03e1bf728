"""Commands and snippet against what llama.cpp and its binding really accept."""

import ast
import importlib.util
import json
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app.domain.draft import DraftResult
from app.domain.errors import UsageProblem
from app.domain.settings import KV_TYPES, SETTINGS, SplitMode
from app.export import FORMATS, export, render
from tests.fakes.models import make_model
from tests.fakes.profiles import PROFILE, with_settings

FLAGS = json.loads((Path(__file__).parents[2] / "golden" / "llama_flags.json").read_bytes())


def _options(text: str) -> dict[str, str]:
    words, options = shlex.split(text)[1:], dict[str, str]()
    for word, following in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            options[word] = "" if following.startswith("--") else following
    return options


@pytest.mark.parametrize("program", ["llama-server", "llama-bench"])
def test_commands_use_only_real_flags(program: str) -> None:
    """Every flag is one that this version of the program parses."""
    words = shlex.split(export(PROFILE, program, windows=False))
    assert words[0] == program
    assert {w for w in words[1:] if w.startswith("--")} <= set(FLAGS[program])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (DraftResult(draft="lookup", n_draft=8, kept=True), {"--spec-type": "ngram-simple"}),
        (
            DraftResult(draft="/my models/small.gguf", n_draft=8, n_gpu_layers=5, kept=True),
            {"--spec-draft-model": "/my models/small.gguf", "--spec-draft-ngl": "5"},
        ),
        (
            DraftResult(draft="small.gguf", n_draft=8, n_gpu_layers=0, kept=True),
            {"--spec-type": "draft-simple", "--spec-draft-device": "none"},
        ),
    ],
    ids=["lookup", "on the device", "in RAM"],
)
def test_kept_drafts_are_in_the_command(found: DraftResult, expected: dict[str, str]) -> None:
    """llama-server gets flags that it still takes, as measured; the others say what they lack."""
    profile = msgspec.structs.replace(PROFILE, draft=found)
    options = _options(export(profile, "llama-server", windows=False))
    assert options.items() >= expected.items()
    assert "8" in (options.get("--spec-draft-n-max"), options.get("--spec-ngram-simple-size-m"))
    assert not set(options) & set(FLAGS["llama-server, refused as removed"])
    assert set(options) <= set(FLAGS["llama-server"])
    for target in set(FORMATS) - {"llama-server"}:
        assert any("Drafted" in note for note in render(profile, target, windows=False).notes)


def test_llama_server_says_every_setting() -> None:
    """Each row of the settings table is there with its value, and fitting is off."""
    options = _options(export(PROFILE, "llama-server", windows=False))
    assert options.pop("--model") == PROFILE.model_path
    assert options.pop("--fit") == "off"
    expected = {
        "--n-gpu-layers": "27",
        "--n-cpu-moe": "3",
        "--ctx-size": "8192",
        "--batch-size": "2048",
        "--ubatch-size": "1024",
        "--flash-attn": "on",
        "--cache-type-k": "q8_0",
        "--cache-type-v": "q8_0",
        "--threads": "8",
        "--threads-batch": "16",
        "--load-mode": "none",
        "--device": "CUDA0,CUDA1",
        "--parallel": "4",
        "--split-mode": "row",
        "--tensor-split": "3,1",
        "--override-tensor": "attn_k=CPU,ffn_up=CUDA1",
    }
    assert options == expected | {"--no-kv-offload": "", "--no-op-offload": ""}
    assert len(options) == len(SETTINGS)


def test_tensors_placed_by_name_come_before_expert_layers() -> None:
    """llama-server takes the first rule that matches; llama-bench separates rules by ``;``."""
    words = shlex.split(export(PROFILE, "llama-server", windows=False))
    assert words.index("--override-tensor") < words.index("--n-cpu-moe")
    bench = _options(export(PROFILE, "llama-bench", windows=False))
    assert bench["--override-tensor"] == "attn_k=CPU;ffn_up=CUDA1"
    remote = with_settings(devices=("RPC0",), override_tensor="exps=RPC0")
    assert any("RPC0[HOST:PORT]" in n for n in render(remote, "llama-server", windows=False).notes)


@pytest.mark.parametrize("target", ["llama-cpp-python", "ollama", "lmstudio"])
def test_targets_without_overrides_say_so(target: str) -> None:
    """What cannot be said is a note; KoboldCpp takes the same text."""
    assert any("attn_k=CPU" in note for note in render(PROFILE, target, windows=False).notes)
    kobold = json.loads(render(PROFILE, "koboldcpp", windows=False).text)
    assert kobold["overridetensors"] == "attn_k=CPU,ffn_up=CUDA1"


def test_what_is_left_to_the_engine_is_not_said() -> None:
    """Thread counts of 0 and an empty device list mean the target's own choice."""
    profile = with_settings(n_threads=0, n_threads_batch=0, devices=())
    options = _options(export(profile, "llama-server", windows=False))
    assert not {"--threads", "--threads-batch", "--device"} & set(options)
    zero = _options(export(with_settings(n_gpu_layers=0), "llama-server", windows=False))
    assert zero["--n-gpu-layers"] == "0"


@pytest.mark.parametrize("target", FORMATS)
def test_no_split_mode_without_a_device(target: str) -> None:
    """What shares nothing is not told how: llama.cpp refuses to load that by tensor."""
    cpu = {"n_gpu_layers": 0, "devices": (), "tensor_split": "", "split_mode": SplitMode.TENSOR}
    exported = render(with_settings(**cpu), target, windows=False)
    assert "split" not in "".join([exported.text, *exported.notes]).lower()


def test_llama_bench_repeats_the_goal_s_workload() -> None:
    """The benchmark runs the goal's prompt, answer and depth with the profile's settings."""
    exported = render(PROFILE, "llama-bench", windows=False)
    options = _options(exported.text)
    assert (options["--n-prompt"], options["--n-gen"], options["--n-depth"]) == (
        "512",
        "256",
        "2048",
    )
    assert options["--device"] == "CUDA0/CUDA1", "a comma would start a second test"
    assert "--ctx-size" not in options
    assert len(exported.notes) == 3


@pytest.mark.parametrize("kind", KV_TYPES)
def test_llama_bench_knows_the_kv_type(kind: str) -> None:
    """Its list of KV types is shorter than llama-server's: the rest is refused, not written."""
    profile = with_settings(type_k=kind, type_v="f16")
    assert kind in FLAGS["llama-server KV types"]
    if kind in FLAGS["llama-bench KV types"]:
        assert _options(export(profile, "llama-bench", windows=False))["--cache-type-k"] == kind
    else:
        with pytest.raises(UsageProblem, match=kind):
            export(profile, "llama-bench", windows=False)


def test_remote_devices_need_their_addresses() -> None:
    """A profile on remote devices says that the command is not complete."""
    notes = render(with_settings(devices=("RPC0",)), "llama-server").notes
    assert any("--rpc" in note for note in notes)


@pytest.mark.parametrize("program", ["llama-server", "llama-bench"])
def test_cpu_only_stays_on_the_cpu(program: str) -> None:
    """Without a device llama.cpp would give long prompts to a GPU: measured was the CPU alone."""
    options = _options(export(with_settings(n_gpu_layers=0, devices=()), program, windows=False))
    assert options["--device"] == "none"
    named = with_settings(n_gpu_layers=0, devices=("CUDA0",))
    assert _options(export(named, program, windows=False))["--device"] == "CUDA0"


@pytest.mark.parametrize("n_threads", [0, 8])
def test_python_snippet_uses_only_real_parameters(n_threads: int) -> None:
    """The snippet parses, and every argument and constant exists in the installed binding."""
    exported = render(
        with_settings(n_threads=n_threads, n_threads_batch=n_threads), "llama-cpp-python"
    )
    (call,) = (n for n in ast.walk(ast.parse(exported.text)) if _is_llama_call(n))
    assert isinstance(call, ast.Call)
    names = {k.arg for k in call.keywords}
    assert names <= _binding_parameters()
    values = {k.arg: ast.unparse(k.value) for k in call.keywords}
    assert ast.literal_eval(values["model_path"]) == PROFILE.model_path
    assert (values["flash_attn"], values["use_mmap"]) == ("True", "False")
    assert len(exported.notes) == 4
    assert all(f"# {note}" in exported.text for note in exported.notes)


@pytest.mark.parametrize("kind", [k for k in KV_TYPES if k != "bf16"])
def test_kv_types_are_constants_of_the_binding(kind: str) -> None:
    """The names of KV types become constants that the binding has."""
    source = (_binding() / "llama_cpp.py").read_text(encoding="utf-8")
    (line,) = [
        x
        for x in export(with_settings(type_k=kind), "llama-cpp-python").splitlines()
        if x.lstrip().startswith("type_k=")
    ]
    constant = line.split(".")[-1].rstrip(",")
    assert f"\n{constant} = " in source


@pytest.mark.engine
def test_python_snippet_opens_the_model(tmp_path: Path) -> None:
    """The engine really takes the snippet's values: they are in its own parameters afterwards."""
    model = make_model(tmp_path / "it's tiny.gguf", "llama")
    changes = {"n_gpu_layers": 0, "n_ctx": 512, "n_batch": 256, "n_ubatch": 128, "n_threads": 2}
    profile = with_settings(**changes, type_k="bf16", type_v="f16", n_threads_batch=1, n_seq_max=1)
    profile = msgspec.structs.replace(profile, model_path=str(model))
    fields = ("n_ctx", "n_batch", "n_ubatch", "n_threads", "n_threads_batch", "type_k", "type_v")
    report = f"p = llm.context_params; print([getattr(p, n) for n in {fields}], llm.n_ctx())"
    # a second time it finds the backends there, as with a build that has them built in
    snippet = export(profile, "llama-cpp-python")
    count = "\nprint(ggml.ggml_backend_reg_count())\n"
    script = snippet + count + snippet + count + report
    result = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True
    )
    once, again, taken = result.stdout.splitlines()
    assert once == again
    assert taken == "[512, 256, 128, 2, 1, 30, 1] 512"


def _is_llama_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "llama_cpp.Llama"


def _binding() -> Path:
    """Find the binding without loading its engine into this process."""
    spec = importlib.util.find_spec("llama_cpp")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _binding_parameters() -> set[str]:
    tree = ast.parse((_binding() / "llama.py").read_text(encoding="utf-8"))
    (llama,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Llama")
    (init,) = (n for n in llama.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    return {a.arg for a in (*init.args.args, *init.args.kwonlyargs)} - {"self"}


@pytest.mark.engine
def test_the_binding_s_own_server_takes_the_values() -> None:
    """Its settings model, which refuses what it does not know the type of, keeps every value."""
    (call,) = (
        n for n in ast.walk(ast.parse(export(PROFILE, "llama-cpp-python"))) if _is_llama_call(n)
    )
    assert isinstance(call, ast.Call)
    values = {k.arg: ast.unparse(k.value) for k in call.keywords if k.arg != "model_path"}
    script = (
        "import json, llama_cpp\n"
        "from llama_cpp.server.settings import ModelSettings\n"
        f"values = dict({', '.join(f'{k}={v}' for k, v in values.items())})\n"
        "known = {k: v for k, v in values.items() if k in ModelSettings.model_fields}\n"
        "taken = ModelSettings(model='a.gguf', **known)\n"
        "print(json.dumps([sorted(set(values) - set(known)), "
        "[k for k, v in known.items() if getattr(taken, k) != v]]))\n"
    )
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    unknown, changed = json.loads(result.stdout.splitlines()[-1])
    assert changed == []
    assert unknown in ([], ["op_offload"])  # the library takes it, its server does not
