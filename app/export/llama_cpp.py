"""llama.cpp's own programs and its Python binding."""

from app.domain.draft import LOOKUP, DraftResult
from app.domain.errors import UsageProblem
from app.domain.overrides import read_overrides
from app.domain.settings import FlashAttn, LoadMode, SplitMode, Switch
from app.domain.sweep import GOAL_WORKLOADS, Goal
from app.export.target import (
    SWITCHES,
    Exported,
    command_line,
    explicit_settings,
    heading,
    lost_drafts,
    lost_overrides,
    lost_placement,
    one_line,
)
from app.store import Profile

# llama-bench sizes the context by its test and has one thread count and one sequence
_NOT_IN_BENCH = {"n_ctx", "n_threads_batch", "n_seq_max"}

# values of ggml's enum that llama-cpp-python has no name for
_NOT_IN_BINDING = {"bf16": "30"}


_LOAD_BACKENDS = """\
# A build with loadable backends (RigTune's engine) starts with none: they are loaded here.
# The usual wheel has them built in and skips this.
lib = pathlib.Path(llama_cpp.llama_cpp._base_path)
ggml = ctypes.CDLL(str(lib / "ggml.dll")) if os.name == "nt" else llama_cpp.llama_cpp._lib
if not ggml.ggml_backend_reg_count():
    folders = (lib, lib.parents[1] / "bin")
    folder = next(f for f in folders if any(f.glob("*ggml-cpu*")))
    ggml.ggml_backend_load_all_from_path(str(folder).encode())"""


def llama_server(profile: Profile, *, windows: bool) -> Exported:
    """Return the ``llama-server`` command with every setting explicit and nothing fitted."""
    arguments = ["llama-server", "--model", profile.model_path]
    for info, value in explicit_settings(profile):
        arguments += [info.flag] if info.name in SWITCHES else [info.flag, _text(value, ",")]
    arguments += _only_the_cpu(profile)
    # without this llama-server may change what is not set, and what is set too low
    arguments += ["--fit", "off"]
    if profile.draft is not None:
        arguments += draft_arguments(profile.draft)
    return Exported(text=command_line(arguments, windows=windows), notes=_remote(profile))


def draft_arguments(found: DraftResult) -> list[str]:
    """Return what ``llama-server`` needs for the drafts that were measured."""
    if found.draft == LOOKUP:
        # it looks for one length only; measured were 4, 3 and 2 tokens
        lengths = ["--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m"]
        return ["--spec-type", "ngram-simple", *lengths, str(found.n_draft)]
    layers = found.n_gpu_layers or 0
    arguments = ["--spec-type", "draft-simple", "--spec-draft-model", found.draft]
    arguments += ["--spec-draft-n-max", str(found.n_draft), "--spec-draft-ngl", str(layers)]
    # without this it follows the model's devices, with no layer on them
    return arguments if layers else [*arguments, "--spec-draft-device", "none"]


def llama_bench(profile: Profile, *, windows: bool) -> Exported:
    """Return the ``llama-bench`` command that repeats the profile's measurement.

    Raises:
        UsageProblem: A KV cache of f32, for which llama-bench has no name.
    """
    if "f32" in (profile.settings.type_k, profile.settings.type_v):
        message = "llama-bench cannot measure a KV cache of type f32."
        raise UsageProblem("kv_type_not_exportable", message, "Export it as llama-server.")
    work = GOAL_WORKLOADS[profile.goal or Goal.CHAT]
    arguments = ["llama-bench", "--model", profile.model_path]
    arguments += ["--n-prompt", str(work.n_prompt), "--n-gen", str(work.n_gen)]
    arguments += ["--n-depth", str(work.depth)]
    for info, value in explicit_settings(profile):
        if info.name not in _NOT_IN_BENCH:
            arguments += [info.flag, _bench_text(info.name, value)]
    arguments += _only_the_cpu(profile)
    notes = ["llama-bench makes the context as large as its test needs."]
    settings = profile.settings
    if settings.n_threads_batch not in {0, settings.n_threads}:
        notes.append("llama-bench uses the decode threads for the prompt too.")
    if settings.n_seq_max > 1:
        notes.append("llama-bench measures one sequence at a time.")
    text = command_line(arguments, windows=windows)
    return Exported(text=text, notes=(*notes, *lost_drafts(profile), *_remote(profile)))


def llama_cpp_python(profile: Profile) -> Exported:
    """Return a Python snippet that opens the model with llama-cpp-python."""
    settings = profile.settings
    values: dict[str, object] = {
        "model_path": repr(profile.model_path),
        "n_gpu_layers": settings.n_gpu_layers,
        "n_ctx": settings.n_ctx,
        "n_batch": settings.n_batch,
        "n_ubatch": settings.n_ubatch,
        # the binding's own default is half the cores, not the physical ones
        "n_threads": settings.n_threads or "psutil.cpu_count(logical=False)",
        "n_threads_batch": settings.n_threads_batch
        or settings.n_threads
        or "psutil.cpu_count(logical=False)",
        "flash_attn": settings.flash_attn is FlashAttn.ON,
        "type_k": _binding_type(settings.type_k),
        "type_v": _binding_type(settings.type_v),
        "use_mmap": settings.load_mode is LoadMode.MMAP,
    }
    if settings.split_mode is not SplitMode.LAYER:
        values["split_mode"] = f"llama_cpp.LLAMA_SPLIT_MODE_{settings.split_mode.upper()}"
    if settings.tensor_split:
        values["tensor_split"] = [int(n) for n in settings.tensor_split.split(",")]
    for name in sorted(SWITCHES):
        if getattr(settings, name) is Switch.OFF:
            values[name] = False
    notes = [*lost_placement(profile), *lost_overrides(profile), *lost_drafts(profile)]
    if settings.n_seq_max > 1:
        notes.append(f"It answers one request at a time, not {settings.n_seq_max}.")
    imports = ["import ctypes", "import os", "import pathlib", "", "import llama_cpp"]
    if not settings.n_threads:
        imports.append("import psutil")
    lines = [
        f"# {heading(profile)}",
        *(f"# {one_line(note)}" for note in notes),
        *imports,
        "",
        _LOAD_BACKENDS,
        "",
        "llm = llama_cpp.Llama(",
        *(f"    {name}={value}," for name, value in values.items()),
        ")",
    ]
    return Exported(text="\n".join(lines) + "\n", file_name="rigtune_llm.py", notes=tuple(notes))


def _bench_text(name: str, value: object) -> str:
    """Return a value as llama-bench takes it: a comma separates what to try one by one."""
    if name in SWITCHES:
        return "1"
    separator = ";" if name == "override_tensor" else "/"
    return _text(value, separator).replace(",", separator)


def _only_the_cpu(profile: Profile) -> list[str]:
    """Return what keeps a measured CPU-only setting on the CPU.

    Without a device named, llama.cpp gives long prompts to a GPU even with no layer on it.
    """
    settings = profile.settings
    return [] if settings.n_gpu_layers or settings.devices else ["--device", "none"]


def _binding_type(name: str) -> str:
    return _NOT_IN_BINDING.get(name, f"llama_cpp.GGML_TYPE_{name.upper()}")


def _text(value: object, separator: str) -> str:
    return separator.join(value) if isinstance(value, tuple) else str(value)


def _remote(profile: Profile) -> tuple[str, ...]:
    settings = profile.settings
    if not any(d.startswith("RPC") for d in settings.devices):
        return ()
    notes = ["Remote devices need --rpc with their addresses as well."]
    if any((r.device or "").startswith("RPC") for r in read_overrides(settings.override_tensor)):
        notes.append("In --override-tensor a remote device is called RPC0[HOST:PORT].")
    return tuple(notes)
