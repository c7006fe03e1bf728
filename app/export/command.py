"""Reads the command line of a llama.cpp program: what somebody already runs, in our words.

Nothing is resolved here: ``all`` stays ``all``. ``app.session.check`` does that, for one model.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import PureWindowsPath

from app.domain.errors import UsageProblem
from app.domain.record import Record

_PROGRAM = re.compile(r"(llama[\w.:-]*(?<!\.gguf)|server|main)(\.exe)?", re.IGNORECASE)
_OF_WINDOWS = re.compile(r"[A-Za-z]:\\|\.exe\b|(^|\s)\.\\", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# a line that goes on in the next one: POSIX shells, cmd.exe, PowerShell
_CONTINUED = re.compile(r"(\\|\^|`)[ \t]*\r?\n")
_SHELL_ENDS = re.compile(r"(&&?|\|\|?|;|\d?>>?.*|<.*)")
_VALUE = re.compile(r"-?(\d+\.?\d*|\.\d+)")
_OPPOSITE = {"mmap": "none", "on": "off", "off": "on"}
_ON, _OFF = {"on", "1", "true", "enabled"}, {"off", "0", "false", "disabled"}

# flag → (our name, the value it stands for; None = it takes one)
_FLAGS: dict[str, tuple[str, str | None]] = {
    flag: (name, value)
    for flags, name, value in (
        ("-m --model", "model", None),
        ("-hf -hfr --hf-repo", "hf_repo", None),
        ("-mu --model-url", "model_url", None),
        ("-ngl --gpu-layers --n-gpu-layers", "n_gpu_layers", None),
        ("-ncmoe --n-cpu-moe", "n_cpu_moe", None),
        ("-cmoe --cpu-moe", "n_cpu_moe", "all"),
        ("-ot --override-tensor", "override_tensor", None),
        ("-c --ctx-size", "n_ctx", None),
        ("-b --batch-size", "n_batch", None),
        ("-ub --ubatch-size", "n_ubatch", None),
        ("-fa --flash-attn", "flash_attn", None),
        ("-ctk --cache-type-k", "type_k", None),
        ("-ctv --cache-type-v", "type_v", None),
        ("-t --threads", "n_threads", None),
        ("-tb --threads-batch", "n_threads_batch", None),
        ("-lm --load-mode", "load_mode", None),
        ("--no-mmap", "load_mode", "none"),
        ("--mmap -mmp", "load_mode", "mmap"),
        ("--mlock", "load_mode", "mlock"),
        ("-dio --direct-io", "load_mode", "direct_io"),
        ("-ndio --no-direct-io", "load_mode", "mmap"),
        ("-dev --device", "devices", None),
        ("-np --parallel", "n_seq_max", None),
        ("-kvu --kv-unified", "kv_unified", "on"),
        ("-no-kvu --no-kv-unified", "kv_unified", "off"),
        ("-fit --fit", "fit", None),
        # what changes speed or memory and has no place in our settings
        ("-nkvo --no-kv-offload", "offload_kqv", "off"),
        ("-kvo --kv-offload", "offload_kqv", "on"),
        ("--no-op-offload", "op_offload", "off"),
        ("--op-offload", "op_offload", "on"),
        ("-nr --no-repack", "repack", "off"),
        ("--repack", "repack", "on"),
        ("-sm --split-mode", "split_mode", None),
        ("-ts --tensor-split", "tensor_split", None),
        ("-mg --main-gpu", "main_gpu", None),
        ("-ncffn --n-cpu-ffn", "n_cpu_ffn", None),
        ("--swa-full", "swa_full", "on"),
        ("-md --model-draft --spec-draft-model", "draft_model", None),
        ("--spec-type", "spec_type", None),
        ("-mm --mmproj", "mmproj", None),
        ("--lora", "lora", None),
        ("--lora-scaled", "lora", None),
        ("--numa", "numa", None),
        ("--prio", "prio", None),
        ("--poll", "poll", None),
        ("-C --cpu-mask", "cpu_mask", None),
        ("-Cr --cpu-range", "cpu_range", None),
        ("--cpu-strict", "cpu_strict", None),
        ("--override-kv", "override_kv", None),
        ("--rope-scaling", "rope_scaling", None),
        ("--rpc", "rpc", None),
        ("-fitt --fit-target", "fit_target", None),
        ("-fitc --fit-ctx", "fit_ctx", None),
        ("--kv-unified-per-slot", "kv_unified_per_slot", None),
    )
    for flag in flags.split()
}
_ACCUMULATE = {"override_tensor"}
# environment variables that llama-server reads in place of flags
_VARIABLES = {
    "LLAMA_ARG_MODEL": "model",
    "LLAMA_ARG_N_GPU_LAYERS": "n_gpu_layers",
    "LLAMA_ARG_N_CPU_MOE": "n_cpu_moe",
    "LLAMA_ARG_OVERRIDE_TENSOR": "override_tensor",
    "LLAMA_ARG_N_CPU_FFN": "n_cpu_ffn",
    "LLAMA_ARG_CTX_SIZE": "n_ctx",
    "LLAMA_ARG_BATCH": "n_batch",
    "LLAMA_ARG_UBATCH": "n_ubatch",
    "LLAMA_ARG_FLASH_ATTN": "flash_attn",
    "LLAMA_ARG_CACHE_TYPE_K": "type_k",
    "LLAMA_ARG_CACHE_TYPE_V": "type_v",
    "LLAMA_ARG_THREADS": "n_threads",
    "LLAMA_ARG_N_PARALLEL": "n_seq_max",
    "LLAMA_ARG_DEVICE": "devices",
    "LLAMA_ARG_SPLIT_MODE": "split_mode",
    "LLAMA_ARG_TENSOR_SPLIT": "tensor_split",
    "LLAMA_ARG_MAIN_GPU": "main_gpu",
    "LLAMA_ARG_LOAD_MODE": "load_mode",
    "LLAMA_ARG_FIT": "fit",
}


class Command(Record, frozen=True, kw_only=True):
    """A command line, taken apart.

    Attributes:
        program: Name of the program, without folder and ``.exe``.
        options: Values by our name (``override_tensor``: all of them, joined by commas).
        ignored: Flags that have no part in speed or memory, or that nobody here knows.
        variables: Environment variables set in front of it that are no options.
    """

    program: str
    options: dict[str, str] = {}
    ignored: tuple[str, ...] = ()
    variables: dict[str, str] = {}


def read_command(text: str) -> Command:
    """Return what ``text``, a command line of llama.cpp, asks for.

    Raises:
        UsageProblem: It is no command line of a llama.cpp program, or a flag lacks its value.
    """
    words = list(_until_shell_operator(_split(text)))
    only_flags = bool(words) and words[0].startswith("-")
    start = None if only_flags else next((i for i, w in enumerate(words) if _is_program(w)), None)
    before = words[:start] if start is not None else []
    if start is None and not only_flags:
        message = "This is no command line of a llama.cpp program."
        hint = 'Quote the whole command: --check "llama-server -m model.gguf -ngl 99".'
        raise UsageProblem("not_a_command", message, hint)
    program = "llama-server" if start is None else _name(words[start])
    set_before = dict(w.split("=", 1) for w in before if _ASSIGNMENT.fullmatch(w))
    options = {_VARIABLES[n]: v for n, v in set_before.items() if n in _VARIABLES}
    is_bench = program.startswith("llama-bench")
    given, ignored = _options(words if start is None else words[start + 1 :], is_bench=is_bench)
    return Command(
        program=program,
        options={n: _plain(n, v) for n, v in (options | given).items()},
        ignored=tuple(ignored),
        variables={n: v for n, v in set_before.items() if n not in _VARIABLES},
    )


def _split(text: str) -> list[str]:
    """Split as the shell it was written for would; on Windows a backslash separates folders."""
    joined = _CONTINUED.sub(" ", text.strip())
    lexer = shlex.shlex(joined, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if _OF_WINDOWS.search(joined):
        lexer.escape = ""
    try:
        return list(lexer)
    except ValueError as error:
        message = f"The command line cannot be split into words: {error}."
        raise UsageProblem("bad_quoting", message, "Close every quotation mark.") from error


def _until_shell_operator(words: list[str]) -> Iterator[str]:
    for word in words:
        if _SHELL_ENDS.fullmatch(word):
            return
        yield word


def _is_program(word: str) -> bool:
    return not _ASSIGNMENT.fullmatch(word) and bool(_PROGRAM.fullmatch(_file_name(word)))


def _file_name(word: str) -> str:
    return PureWindowsPath(word).name  # both kinds of slash


def _name(word: str) -> str:
    return re.sub(r"\.exe$", "", _file_name(word), flags=re.IGNORECASE).lower()


def _options(words: list[str], *, is_bench: bool) -> tuple[dict[str, str], list[str]]:
    """Return values by our name, and the flags that have none; a repeated flag's last one counts.

    A switch of llama-bench has a value: ``--mmap 0``.
    """
    found: dict[str, str] = {}
    ignored: list[str] = []
    rest = list(words)
    while rest:
        flag, value = _flag(rest.pop(0))
        name, fixed = _FLAGS.get(flag, (None, None))
        if name is None:
            if flag.startswith("-"):
                ignored.append(flag)
            continue
        if fixed is not None:
            if value is None and is_bench and rest and rest[0] in _ON | _OFF:
                value = rest.pop(0)
            found[name] = fixed if value is None or value in _ON else _OPPOSITE.get(fixed, fixed)
            continue
        if value is None:
            value = rest.pop(0) if rest and _is_value(rest[0], name) else None
        if value is None:
            value = _without_value(flag, name)
        old = found.get(name)
        found[name] = f"{old},{value}" if old and name in _ACCUMULATE else value
    return found, ignored


def _flag(word: str) -> tuple[str, str | None]:
    """Return the flag as llama.cpp spells it and the value after ``=``, if there is one."""
    name, equals, value = word.partition("=")
    if not word.startswith("-") or (equals and not re.fullmatch(r"-{1,2}[\w-]+", name)):
        return word, None
    spelled = name.replace("_", "-") if name.startswith("--") else name
    return spelled, value if equals else None


def _is_value(word: str, name: str) -> bool:
    """Whether ``word`` is a value: no flag, or a number below 0."""
    if name == "flash_attn":  # older programs: a switch without a value
        return word.lower() in _ON | _OFF | {"auto", "-1"}
    return not word.startswith("-") or bool(_VALUE.fullmatch(word))


def _without_value(flag: str, name: str) -> str:
    if name == "flash_attn":
        return "on"
    raise UsageProblem("flag_without_value", f"{flag} has no value.", "Complete the command line.")


def _plain(name: str, value: str) -> str:
    """Return a choice in lower case, and on/off for all the words there are for it."""
    if name in {"model", "hf_repo", "model_url", "override_tensor", "devices", "draft_model"}:
        return value
    lower = value.lower()
    if name in {"flash_attn", "fit"}:
        return "on" if lower in _ON else "off" if lower in _OFF else "auto"
    return lower
