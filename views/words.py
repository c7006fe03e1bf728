"""Words of the window for the core's codes; the core itself never speaks to a widget."""

from collections.abc import Iterable, Mapping, Sequence

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QDateTime, QLocale, Qt

from app.advice.said import said
from app.advice.text import FALLBACK, render
from app.domain.errors import Bug, ErrorInfo
from app.domain.memory import Verdict
from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, LoadMode, Settings, SplitMode
from app.domain.sweep import BudgetName, Goal, Reason, SweepStatus
from app.domain.trial import Rate
from app.domain.units import MISSING, significant
from views.language import text_language
from views.units import keep_units

VERDICT_TONES = {
    Verdict.FITS: "good",
    Verdict.TIGHT: "warn",
    Verdict.DOES_NOT_FIT: "bad",
    Verdict.UNKNOWN: "muted",
}
_VERDICTS = {
    Verdict.FITS: QT_TRANSLATE_NOOP("Words", "fits"),
    Verdict.TIGHT: QT_TRANSLATE_NOOP("Words", "tight"),
    Verdict.DOES_NOT_FIT: QT_TRANSLATE_NOOP("Words", "does not fit"),
    Verdict.UNKNOWN: QT_TRANSLATE_NOOP("Words", "not known"),
}
_PARTS = {
    "weights": QT_TRANSLATE_NOOP("Words", "Weights"),
    "kv_cache": QT_TRANSLATE_NOOP("Words", "KV cache"),
    "compute": QT_TRANSLATE_NOOP("Words", "Compute buffers"),
    "overhead": QT_TRANSLATE_NOOP("Words", "Driver and growth"),
}
_GOALS = {
    Goal.CHAT: (
        "chat", QT_TRANSLATE_NOOP("Words", "Chat"),
        QT_TRANSLATE_NOOP("Words", "Short questions and answers"),
    ),
    Goal.DOCUMENTS: (
        "document", QT_TRANSLATE_NOOP("Words", "Documents"),
        QT_TRANSLATE_NOOP("Words", "Long texts in, summaries out"),
    ),
    Goal.AGENT: (
        "agent", QT_TRANSLATE_NOOP("Words", "Agent"),
        QT_TRANSLATE_NOOP("Words", "Four requests at once"),
    ),
    Goal.LONG_CONTEXT: (
        "long", QT_TRANSLATE_NOOP("Words", "Long context"),
        QT_TRANSLATE_NOOP("Words", "Long memory, good speed"),
    ),
    Goal.QUIET: (
        "quiet", QT_TRANSLATE_NOOP("Words", "Quiet"),
        QT_TRANSLATE_NOOP("Words", "Chat with less heat and noise"),
    ),
}  # fmt: skip
_BUDGETS = {
    BudgetName.QUICK: QT_TRANSLATE_NOOP("Words", "Quick, up to 3 min"),
    BudgetName.STANDARD: QT_TRANSLATE_NOOP("Words", "Standard, up to 12 min"),
    BudgetName.THOROUGH: QT_TRANSLATE_NOOP("Words", "Thorough, up to 45 min"),
}
_STATUSES = {
    SweepStatus.COMPLETE: ("good", QT_TRANSLATE_NOOP("Words", "complete")),
    SweepStatus.BUDGET_REACHED: ("warn", QT_TRANSLATE_NOOP("Words", "stopped at its budget")),
    SweepStatus.CANCELLED: ("warn", QT_TRANSLATE_NOOP("Words", "not finished")),
    SweepStatus.FAILED: ("bad", QT_TRANSLATE_NOOP("Words", "failed")),
}
_OUTCOMES = {
    Outcome.OK: QT_TRANSLATE_NOOP("Words", "measured"),
    Outcome.OUT_OF_MEMORY: QT_TRANSLATE_NOOP("Words", "out of memory"),
    Outcome.LOAD_FAILED: QT_TRANSLATE_NOOP("Words", "load failed"),
    Outcome.UNSUPPORTED: QT_TRANSLATE_NOOP("Words", "not supported"),
    Outcome.TIMED_OUT: QT_TRANSLATE_NOOP("Words", "timed out"),
    Outcome.DEVICE_LOST: QT_TRANSLATE_NOOP("Words", "device lost"),
    Outcome.CRASHED: QT_TRANSLATE_NOOP("Words", "engine crashed"),
    Outcome.CANCELLED: QT_TRANSLATE_NOOP("Words", "cancelled"),
    Outcome.SPILLED: QT_TRANSLATE_NOOP("Words", "spilled"),
    Outcome.THROTTLED: QT_TRANSLATE_NOOP("Words", "throttled"),
}
_PHASES = {
    "start": QT_TRANSLATE_NOOP("Words", "starting the engine"),
    "load": QT_TRANSLATE_NOOP("Words", "loading weights"),
    "context": QT_TRANSLATE_NOOP("Words", "creating the context"),
    "warm_up": QT_TRANSLATE_NOOP("Words", "warming up"),
    "prefill": QT_TRANSLATE_NOOP("Words", "timing prefill"),
    "decode": QT_TRANSLATE_NOOP("Words", "timing decode"),
    "check": QT_TRANSLATE_NOOP("Words", "checking the output"),
    "cool_down": QT_TRANSLATE_NOOP("Words", "letting the GPU cool down"),
}
_KNOBS = {
    "n_gpu_layers": QT_TRANSLATE_NOOP("Words", "GPU layers"),
    "n_cpu_moe": QT_TRANSLATE_NOOP("Words", "Expert layers on CPU"),
    "override_tensor": QT_TRANSLATE_NOOP("Words", "Tensors placed by name"),
    "n_threads": QT_TRANSLATE_NOOP("Words", "Decode threads"),
    "n_threads_batch": QT_TRANSLATE_NOOP("Words", "Prefill threads"),
    "n_batch": QT_TRANSLATE_NOOP("Words", "Prompt batch"),
    "n_ubatch": QT_TRANSLATE_NOOP("Words", "Physical batch"),
    "n_ctx": QT_TRANSLATE_NOOP("Words", "Context length"),
    "flash_attn": QT_TRANSLATE_NOOP("Words", "Flash attention"),
    "type_k": QT_TRANSLATE_NOOP("Words", "K cache type"),
    "type_v": QT_TRANSLATE_NOOP("Words", "V cache type"),
    "load_mode": QT_TRANSLATE_NOOP("Words", "Weights in RAM"),
    "devices": QT_TRANSLATE_NOOP("Words", "Devices"),
    "n_seq_max": QT_TRANSLATE_NOOP("Words", "Parallel sequences"),
    "split_mode": QT_TRANSLATE_NOOP("Words", "How devices share the model"),
    "tensor_split": QT_TRANSLATE_NOOP("Words", "Share of each device"),
    "offload_kqv": QT_TRANSLATE_NOOP("Words", "KV cache on the GPU"),
    "op_offload": QT_TRANSLATE_NOOP("Words", "Prompt of CPU layers on the GPU"),
    "depth": QT_TRANSLATE_NOOP("Words", "Tokens in context"),
    "trial": QT_TRANSLATE_NOOP("Words", "Trial"),
}
_STAGES = {
    "probe": QT_TRANSLATE_NOOP("Words", "A short first look"),
    "memory": QT_TRANSLATE_NOOP("Words", "Which loads memory allows"),
    "auto_fit": QT_TRANSLATE_NOOP("Words", "Baseline: llama.cpp's own fit"),
    "cpu": QT_TRANSLATE_NOOP("Words", "Baseline: CPU only"),
    "devices": QT_TRANSLATE_NOOP("Words", "Which device is fastest"),
    "layers": QT_TRANSLATE_NOOP("Words", "How many layers on the GPU"),
    "load_mode": QT_TRANSLATE_NOOP("Words", "Weights in RAM: mapped or pinned"),
    "knobs": QT_TRANSLATE_NOOP("Words", "The best so far, measured again"),
    "threads": QT_TRANSLATE_NOOP("Words", "Threads"),
    "flash_attn": QT_TRANSLATE_NOOP("Words", "Flash attention"),
    "ubatch": QT_TRANSLATE_NOOP("Words", "Physical batch"),
    "kv": QT_TRANSLATE_NOOP("Words", "KV cache type"),
    "context_curve": QT_TRANSLATE_NOOP("Words", "Speed with a filling context"),
    "finals": QT_TRANSLATE_NOOP("Words", "Final: the best two, compared in turns"),
    "soak": QT_TRANSLATE_NOOP("Words", "Whether the speed lasts"),
    "engine": QT_TRANSLATE_NOOP("Words", "Two engines compared"),
    "recheck": QT_TRANSLATE_NOOP("Words", "Re-check of an earlier result"),
}

_THROTTLES = {
    "app_clocks": QT_TRANSLATE_NOOP("Words", "clock setting"),
    "sw_power_cap": QT_TRANSLATE_NOOP("Words", "power limit"),
    "hw_slowdown": QT_TRANSLATE_NOOP("Words", "hardware slowdown"),
    "sync_boost": QT_TRANSLATE_NOOP("Words", "kept in step with another card"),
    "sw_thermal": QT_TRANSLATE_NOOP("Words", "heat"),
    "hw_thermal": QT_TRANSLATE_NOOP("Words", "heat, hardware limit"),
    "hw_power_brake": QT_TRANSLATE_NOOP("Words", "power brake"),
    "display_clocks": QT_TRANSLATE_NOOP("Words", "display clocks"),
    "board_limit": QT_TRANSLATE_NOOP("Words", "board limit"),
    "reliability": QT_TRANSLATE_NOOP("Words", "voltage limit"),
    "prochot": QT_TRANSLATE_NOOP("Words", "processor or board too hot"),
    "other": QT_TRANSLATE_NOOP("Words", "another reason"),
}

translate = QCoreApplication.translate

_QUOTED = ("message", "hint", "why")
"""Data that holds sentences of the core."""


def number(value: float, decimals: int = 0) -> str:
    """Return a number as the language in use writes it."""
    locale = QLocale()
    # The C locale would write no separators.
    locale.setNumberOptions(QLocale.NumberOption.DefaultNumberOptions)
    return locale.toString(float(value), "f", decimals)


def local_time(utc: str, *, to_the_second: bool = False) -> str:
    """Return when something was by this machine's clock.

    Args:
        utc: RFC 3339 time; text that is none is returned as it is.
        to_the_second: Whether minutes are too coarse.
    """
    moment = QDateTime.fromString(utc, Qt.DateFormat.ISODateWithMs)
    form = "yyyy-MM-dd HH:mm:ss" if to_the_second else "yyyy-MM-dd HH:mm"
    return moment.toLocalTime().toString(form) if moment.isValid() else utc


def sentence(section: str, code: str, data: Mapping[str, str | int | float | None]) -> str:
    """Return a text of ``assets/text`` in the language in use; empty where there is none."""
    try:
        told = {
            name: said_text(value) if name in _QUOTED and isinstance(value, str) else value
            for name, value in data.items()
        }
        return keep_units(render(section, code, told, text_language()))
    except Bug:
        return ""


def paragraph(sentences: Iterable[str]) -> str:
    """Return sentences one after the other; Chinese ones need no space between them."""
    gap = "" if text_language() == "zh" else " "
    return gap.join(filter(None, sentences))


def said_text(text: str) -> str:
    """Return sentences of the core in the language in use; as they are where that has none."""
    # Back-ticks mark commands in a terminal; here they would only be noise.
    return (said(text, text_language()) or text).replace("`", "")


def absence_text(reason: str) -> str:
    """Return why a reading is missing."""
    return sentence("absence", reason, {}) or reason.replace("_", " ") if reason else ""


def throttle_text(reasons: Sequence[str]) -> str:
    """Return why a device is slowed down."""
    return ", ".join(translate("Words", str(_THROTTLES.get(r, r))) for r in reasons)


def error_text(error: ErrorInfo) -> str:
    """Return what went wrong and what to do.

    Where the language in use has no words for it, the kind of problem is said first, and then what
    the core said in English.
    """
    language = text_language()
    message, hint = said(error.message, language), said(error.hint, language)
    if message is not None and hint is not None:
        gap = " " if language == FALLBACK else ""
        return f"{message}{gap}{hint}".replace("`", "").strip()
    own = f"{error.message} {error.hint}".replace("`", "").strip()
    known = sentence("error", error.code, {}) or translate("Words", "Something went wrong.")
    return translate("Words", "{sentence} ({details})").format(sentence=known, details=own)


def power_text(reason: Reason) -> str:
    """Return what the governor did, or has to say."""
    return sentence("power", reason.code, reason.data)


def verdict_label(verdict: Verdict) -> str:
    """Return whether it fits, in words."""
    return translate("Words", str(_VERDICTS[verdict]))


def memory_part_label(part: str) -> str:
    """Return the name of a part of a memory estimate."""
    return translate("Words", str(_PARTS[part]))


def goal_icon(goal: Goal) -> str:
    """Return the icon of a goal."""
    return _GOALS[goal][0]


def goal_label(goal: Goal) -> str:
    """Return the short name of a goal."""
    return translate("Words", str(_GOALS[goal][1]))


def goal_text(goal: Goal) -> str:
    """Return what a goal is for."""
    return translate("Words", str(_GOALS[goal][2]))


def budget_label(budget: BudgetName) -> str:
    """Return a budget with its bounds."""
    return translate("Words", str(_BUDGETS[budget]))


def status_label(status: SweepStatus | None) -> str:
    """Return how a search ended."""
    return (
        translate("Words", "not finished")
        if status is None
        else translate("Words", str(_STATUSES[status][1]))
    )


def status_tone(status: SweepStatus | None) -> str:
    """Return the tone of a search's end."""
    return "muted" if status is None else _STATUSES[status][0]


def outcome_label(outcome: Outcome) -> str:
    """Return how a trial ended."""
    return translate("Words", str(_OUTCOMES[outcome]))


def phase_label(phase: str) -> str:
    """Return what a trial is doing."""
    return translate("Words", str(_PHASES[phase])) if phase in _PHASES else phase


def stage_label(stage: str) -> str:
    """Return what a stage of the search finds out."""
    return (
        translate("Words", str(_STAGES[stage]))
        if stage in _STAGES
        else stage.replace("_", " ").capitalize()
    )


def knob_label(knob: str) -> str:
    """Return a knob in plain words."""
    return translate("Words", str(_KNOBS[knob])) if knob in _KNOBS else knob


def depth_text(depth: int) -> str:
    """Return at how many tokens in context a speed holds."""
    if not depth:
        return translate("Words", "with an empty context")
    return translate("Words", "at {n} tokens in context").format(n=number(depth))


def rate_text(rate: Rate | None) -> str:
    """Return a speed with half its 95 % interval, without unit."""
    if rate is None:
        return MISSING
    half = (rate.high - rate.low) / 2
    return f"{significant(rate.median)} ± {significant(half, 2)}"


def settings_parts(settings: Settings) -> dict[str, str]:
    """Return what a person wants to know of settings, by llama.cpp's names."""
    texts = {
        "n_gpu_layers": translate("Words", "GPU layers {n}").format(n=settings.n_gpu_layers),
        "n_ctx": translate("Words", "context {n}").format(n=number(settings.n_ctx)),
        "n_ubatch": translate("Words", "batch {n}").format(n=settings.n_ubatch),
    }
    if settings.n_cpu_moe:
        text = translate("Words", "expert layers on CPU {n}")
        texts["n_cpu_moe"] = text.format(n=settings.n_cpu_moe)
    if settings.override_tensor:
        text = translate("Words", "tensors {rules}")
        texts["override_tensor"] = text.format(rules=settings.override_tensor)
    if settings.n_threads:
        texts["n_threads"] = translate("Words", "threads {n}").format(n=settings.n_threads)
    if {k := settings.type_k, v := settings.type_v} != {"f16"}:
        texts["type_k"] = translate("Words", "KV {k}/{v}").format(k=k, v=v)
    if settings.flash_attn is FlashAttn.OFF:
        texts["flash_attn"] = translate("Words", "flash attention off")
    if (mode := settings.split_mode) is not SplitMode.LAYER:
        texts["split_mode"] = translate("Words", "split mode {mode}").format(mode=mode)
    if settings.load_mode is LoadMode.NONE:
        texts["load_mode"] = translate("Words", "weights pinned")
    return texts


def settings_text(settings: Settings) -> str:
    """Return the settings that matter in one short line."""
    return ", ".join(settings_parts(settings).values())


def differing_texts(many: Sequence[Settings]) -> list[str]:
    """Return for each of ``many`` what tells it from the others; GPU layers always."""
    parts = [settings_parts(s) for s in many]
    names = dict.fromkeys(name for part in parts for name in part)
    varied = [n for n in names if len({part.get(n) for part in parts}) > 1]
    shown = dict.fromkeys(["n_gpu_layers", *varied])
    return [", ".join(part[n] for n in shown if n in part) for part in parts]
