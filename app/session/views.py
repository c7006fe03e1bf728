"""Answers of the façade that are more than one record of the domain."""

from app.domain.memory import MemoryEstimate, Verdict
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.units import MISSING, significant


class IfClosed(Record, frozen=True, kw_only=True):
    """What would fit if a program that holds GPU memory were closed.

    Attributes:
        device: Device it holds memory of.
        pid: Its process.
        name: Its name, where the system tells it.
        vram_bytes: What it holds there.
        verdict: Whether the configuration would fit then.
        max_n_gpu_layers: Most layers that would fit.
        max_n_ctx: Longest context that would fit, tokens.
    """

    device: str
    pid: int
    name: str | None
    vram_bytes: int
    verdict: Verdict
    max_n_gpu_layers: int | None
    max_n_ctx: int | None


class Remedy(Record, frozen=True, kw_only=True):
    """A setting that would need less, and what that brings.

    Attributes:
        knob: The setting: ``flash_attn``, ``n_ubatch`` or ``n_seq_max``.
        value: What to set it to.
        saved_bytes: How much less is needed, devices and RAM together.
        verdict: Whether it would fit then.
        max_n_gpu_layers: Most layers that would fit then; ``None`` = not known.
    """

    knob: str
    value: str
    saved_bytes: int
    verdict: Verdict
    max_n_gpu_layers: int | None


class Estimate(Record, frozen=True, kw_only=True):
    """A configuration's need and the most that would fit around it.

    Attributes:
        settings: The configuration asked about.
        estimate: Its need and verdict per device.
        max_n_gpu_layers: Most layers that fit at this context; ``None`` = not known.
        max_n_ctx: Longest context that fits at these layers, tokens; ``None`` = not known.
        min_n_cpu_moe: Fewest layers whose experts must stay in RAM for the rest to fit; ``None``
            for a model without experts, or when nothing helps.
        cheapest_kv: Type of K and V that loses least among those with which it fits.
        next_layer_bytes: What one more GPU layer costs over all devices, beyond the layers asked
            for or the most that fit; ``None`` = all are there.
        if_closed: The programs that hold most memory of the devices used.
        remedies: Settings that would need less, the largest saving first.
        overhead_source: Where the memory that llama.cpp does not count comes from, a sentence.
    """

    settings: Settings
    estimate: MemoryEstimate
    max_n_gpu_layers: int | None
    max_n_ctx: int | None
    min_n_cpu_moe: int | None = None
    cheapest_kv: str | None = None
    next_layer_bytes: int | None = None
    if_closed: tuple[IfClosed, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    overhead_source: str = ""


class Prediction(Record, frozen=True, kw_only=True):
    """Decode speed of a model on this machine, and what it rests on.

    Attributes:
        tok_s: Tokens per second; ``None`` = nothing can be said.
        source: ``measured`` (tuned here), ``estimated`` (from other models' measurements here) or
            ``bound`` (at most, from the measured speed of RAM).
        reason: Why there is none: ``nothing_measured``, ``gpu_asleep``, ``not_usable`` or
            ``not_unpacked`` (the demo model before its first use).
    """

    tok_s: float | None = None
    source: str | None = None
    reason: str | None = None


class ModelEntry(Record, frozen=True, kw_only=True):
    """A model found on this machine, with its verdict.

    Attributes:
        id: What the user may type for it.
        origin: Program that downloaded it.
        name: That program's name for it.
        path: First file.
        file_bytes: Size of all its files.
        arch: Architecture, ``None`` when the header cannot be read.
        quant: File type such as ``Q4_K_M``.
        verdict: Whether all layers fit the devices (RAM when there is none).
        predicted_tok_s: ``predicted.tok_s``.
        predicted: Decode speed here, tagged, or why there is none.
        problem: Why it cannot be used, if so.
    """

    id: str
    origin: str
    name: str
    path: str
    file_bytes: int
    arch: str | None = None
    quant: str | None = None
    verdict: Verdict = Verdict.UNKNOWN
    predicted_tok_s: float | None = None
    predicted: Prediction = Prediction()
    problem: str | None = None


class ReadSpeeds(Record, frozen=True, kw_only=True):
    """What bounds layers in RAM and a load of weights: measured, not read from anywhere.

    Attributes:
        ram_gb_s: Reading RAM with a thread per core, 10⁹ bytes per second.
        disk_mb_s: Reading a model's file with an empty cache, 10⁶ bytes per second.
        folder: Where that file lies.
    """

    ram_gb_s: float | None
    disk_mb_s: float | None
    folder: str


def speeds_text(speeds: ReadSpeeds) -> str:
    """Return the measured speeds as a sentence."""
    ram, disk = _shown(speeds.ram_gb_s, "GB/s"), _shown(speeds.disk_mb_s, "MB/s")
    return (
        f"Measured now: RAM is read at {ram} (it bounds layers in RAM), "
        f"{speeds.folder} at {disk} (it bounds loading)"
    )


def _shown(value: float | None, unit: str) -> str:
    return MISSING if value is None else f"{significant(value)} {unit}"
