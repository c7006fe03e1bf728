"""A search's answer as text, for the clipboard and for sentences on the page. No Qt widgets."""

from PySide6.QtCore import QCoreApplication

from app.domain.settings import SETTINGS, Settings
from app.domain.sweep import Reason, Recommended, SweepResult
from app.domain.units import MISSING, format_seconds, format_tok_s
from views.plots.sweep_data import depth_of, distinct_knee, is_other
from views.units import format_bytes
from views.words import (
    depth_text,
    knob_label,
    number,
    rate_text,
    sentence,
    settings_text,
    status_label,
)

translate = QCoreApplication.translate


def points_of(result: SweepResult) -> tuple[tuple[str, Recommended], ...]:
    """Return what is worth comparing, by name; a reference that won is not repeated."""
    cpu = result.baseline_cpu
    if cpu is not None and not is_other(cpu, result):
        cpu = None
    named = (
        (translate("Result", "Recommended"), result.recommended),
        (translate("Result", "Knee: saves memory"), distinct_knee(result)),
        (translate("Result", "llama.cpp's own fit"), result.baseline_auto_fit),
        (translate("Result", "CPU only"), cpu),
    )
    return tuple((name, point) for name, point in named if point is not None)


def reason_text(reason: Reason) -> str:
    """Return the sentence of a reason; its code where a text is missing."""
    return sentence("reason", reason.code, reason.data) or reason.code.replace("_", " ")


def setting_rows(settings: Settings) -> tuple[tuple[str, str, str], ...]:
    """Return every setting as label, value and llama.cpp's own name."""
    return tuple((knob_label(i.name), setting_text(settings, i.name), i.name) for i in SETTINGS)


def setting_text(settings: Settings, name: str) -> str:
    """Return one setting in words: what stands for "none" or "as usual" says so.

    A choice is said in words, followed by llama.cpp's own word where that is another; types,
    device names and patterns have no other words.
    """
    value = getattr(settings, name)
    if name == "devices" and not value:
        on_gpu = settings.n_gpu_layers > 0
        return translate("Result", "all") if on_gpu else translate("Result", "none: CPU only")
    if isinstance(value, tuple):
        return ", ".join(value)
    unset = {
        "n_threads": translate("Result", "physical cores"),
        "n_threads_batch": translate("Result", "as in decode"),
        "tensor_split": translate("Result", "by free memory"),
        "override_tensor": translate("Result", "none"),
    }
    if not value and name in unset:
        return unset[name]
    return number(value) if isinstance(value, int) else _choice_text(name, str(value))


def _choice_text(name: str, value: str) -> str:
    words = {
        "on": translate("Result", "on"), "off": translate("Result", "off"),
        "auto": translate("Result", "automatic"),
        "split_mode layer": translate("Result", "whole layers one after the other"),
        "split_mode none": translate("Result", "only the first device"),
        "split_mode row": translate("Result", "matrices by rows"),
        "split_mode tensor": translate("Result", "every layer on all devices at once"),
        "load_mode mmap": translate("Result", "mapped from the file"),
        "load_mode none": translate("Result", "copied to RAM"),
    }  # fmt: skip
    text = words.get(f"{name} {value}") or words.get(value, value)
    if text == value:
        return text
    return translate("Result", "{words} ({own})").format(words=text, own=value)


def device_text(point: Recommended) -> str:
    """Return the memory need per device in one line."""
    needs = [f"{name} {format_bytes(n)}" for name, n in point.device_bytes.items()]
    if not needs and point.settings.devices and point.settings.is_divided:
        return translate(
            "Result", "{missing} (llama.cpp does not count it in this split mode)"
        ).format(missing=MISSING)
    return ", ".join(needs) or translate("Result", "RAM only")


def gain_text(result: SweepResult) -> str:
    """Return how the answer compares with llama.cpp's own fit; empty where that is unknown.

    Also where the own fit breaks what the user fixed, or is not told apart: a reason says so.
    """
    best, own = result.recommended, result.baseline_auto_fit
    if any(r.code in ("auto_fit_barred", "auto_fit_close") for r in result.reasons):
        return ""
    if best is None or own is None or not best.request_s or not own.request_s:
        return ""
    gain = own.request_s / best.request_s - 1
    if gain < 0.005:
        return translate("Result", "As fast as llama.cpp's own automatic fit.")
    text = translate("Result", "{gain}\u00a0% faster than llama.cpp's own automatic fit.")
    return text.format(gain=f"{gain * 100:.0f}")


def result_text(result: SweepResult, model: str) -> str:
    """Return the whole answer as plain text."""
    head = translate("Result", "RigTune: {model}, search {status}, trials {n}, loads {loads}")
    lines = [
        head.format(
            model=model, status=status_label(result.status), n=len(result.trials),
            loads=result.n_model_loads,
        )
    ]  # fmt: skip
    depth = depth_of(result)
    if depth is not None:
        lines.append(translate("Result", "Speeds {depth}:").format(depth=depth_text(depth)))
    for name, point in points_of(result):
        decode = point.decode_tok_s
        lines.append(
            translate(
                "Result",
                "{name}: {decode} decode, {prefill} tok/s prefill, {time} per request, {memory}; "
                "{settings}",
            ).format(
                name=name, decode=format_tok_s(decode.median if decode else None),
                prefill=rate_text(point.prefill_tok_s), time=format_seconds(point.request_s),
                memory=device_text(point), settings=settings_text(point.settings),
            )
        )  # fmt: skip
    lines += [f"- {reason_text(reason)}" for reason in result.reasons]
    return "\n".join(lines).replace("\u00a0", " ")


def file_name(model: str) -> str:
    """Return the file part of a model's path, or "—"."""
    return model.replace("\\", "/").rsplit("/", 1)[-1] or MISSING
