"""Tries drafted tokens on the search's answer: kept only where the gain is proven and it fits."""

from collections.abc import Callable, Generator

import msgspec

from app.domain.draft import LOOKUP, DraftResult
from app.domain.errors import ErrorInfo, UsageProblem
from app.domain.events import Event, TrialProgress
from app.domain.machine import Machine
from app.domain.memory import MemoryEstimate, MemorySource, Verdict
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.domain.sweep import SweepResult
from app.domain.units import format_bytes
from app.rig.workers import WorkerRig
from app.session.loading import load
from app.session.opening import memory_for, usable_devices
from app.store import Store
from app.sweep.stats import paired_difference, seconds_per_token
from app.worker.protocol import Failed, Speculate, Speculated

MTP = "mtp"
N_DRAFT = 8
N_GEN, N_TURNS, MAX_S = 64, 5, 40.0

DraftMemory = Callable[[Settings], MemoryEstimate]


class DraftTried(Event, frozen=True, kw_only=True, tag="draft.tried"):
    """The comparison is done."""

    result: DraftResult


def check_draft(draft: str) -> None:
    """Refuse what this engine cannot do.

    Raises:
        UsageProblem: Prediction heads (MTP) were asked for.
    """
    if draft.lower() == MTP:
        message = (
            "Prediction heads (MTP) cannot be tried here: llama.cpp's loop for them is in its "
            "common library (common/speculative.cpp), which the Python binding does not contain."
        )
        hint = "Try llama-server --spec-type draft-mtp; --draft lookup or a draft model work here."
        raise UsageProblem("mtp_not_in_engine", message, hint)


def need_of(spec: ModelSpec | None, machine: Machine, devices: tuple[str, ...]) -> DraftMemory:
    """Return what estimates a draft model's memory on this machine."""
    if spec is None:
        return lambda _: MemoryEstimate(
            devices=(), source=MemorySource.FORMULA, verdict=Verdict.FITS
        )
    return memory_for(spec, machine, usable_devices(machine, devices)).estimate


def try_draft(
    spec: ModelSpec | None, need: DraftMemory, result: SweepResult, rig: WorkerRig
) -> Generator[TrialProgress, None, DraftTried]:
    """Compare decode with and without drafts on the recommended settings.

    Args:
        spec: The draft model; ``None`` = looked up in the text.
        need: Estimates the draft model's memory.
        result: The search's answer.
        rig: Where it was found.
    """
    found = DraftResult(draft=spec.path if spec else LOOKUP, n_draft=N_DRAFT)
    best = result.recommended
    if best is None:
        return _failed(found, "no_answer", "The search found no settings to add drafts to.")
    settings = Settings(n_gpu_layers=0)
    if spec is not None:
        placed = place(spec, best.settings, need, rig.dry_run(best.settings))
        if isinstance(placed, ErrorInfo):
            return DraftTried(result=msgspec.structs.replace(found, error=placed))
        settings = placed
        found = msgspec.structs.replace(found, n_gpu_layers=settings.n_gpu_layers)
    failed = yield from load(best.settings, rig, "draft")
    if failed is not None:
        return DraftTried(result=msgspec.structs.replace(found, error=failed))
    question = Speculate(
        settings=best.settings,
        draft_path=spec.path if spec else "",
        draft_settings=settings,
        n_draft=N_DRAFT,
        n_gen=N_GEN,
        n_turns=N_TURNS,
        max_s=MAX_S,
    )
    reply = yield from rig.ask_loaded(question)
    if isinstance(reply, Failed):
        return DraftTried(result=msgspec.structs.replace(found, error=reply.error))
    if not isinstance(reply, Speculated):
        return _failed(found, "not_loaded", "The recommended settings could not be loaded again.")
    return DraftTried(result=judged(found, reply))


def place(
    spec: ModelSpec, target: Settings, need: DraftMemory, taken: MemoryEstimate
) -> Settings | ErrorInfo:
    """Return where the draft model goes: beside the model where both fit, else to RAM.

    Args:
        spec: The draft model.
        target: The model's settings.
        need: Estimates the draft model's memory.
        taken: What the model itself needs.
    """
    base = msgspec.structs.replace(
        target, n_gpu_layers=0, n_cpu_moe=0, override_tensor="", n_ctx=512, n_seq_max=1,
        type_k="f16", type_v="f16",
    )  # fmt: skip
    on_device = msgspec.structs.replace(base, n_gpu_layers=spec.max_gpu_layers)
    if target.devices and target.n_gpu_layers and _fit_together(taken, need(on_device)):
        return on_device
    in_ram = msgspec.structs.replace(base, devices=())
    host = [d for d in need(in_ram).devices if d.device == "host"]
    for device in host:
        if device.free_bytes is not None and device.total_bytes > device.free_bytes:
            message = (
                f"The draft model needs {format_bytes(device.total_bytes)} more of RAM, where "
                f"{format_bytes(device.free_bytes)} are free."
            )
            return ErrorInfo(code="draft_does_not_fit", message=message, hint="Use --draft lookup.")
    return in_ram


def _fit_together(taken: MemoryEstimate, more: MemoryEstimate) -> bool:
    """Whether both leave every device its headroom: drafting never goes above the bound."""
    extra = more.device_bytes()
    gpus = [d for d in taken.devices if d.device != "host"]
    known = {d.device: d.total_bytes + d.headroom_bytes + extra.get(d.device, 0) for d in gpus}
    free = {d.device: d.free_bytes or 0 for d in gpus}
    return set(extra) <= set(known) and all(known[name] <= free[name] for name in extra)


def judged(found: DraftResult, reply: Speculated) -> DraftResult:
    """Return the verdict on both kinds of passes."""
    plain, drafted = seconds_per_token(reply.plain), seconds_per_token(reply.drafted)
    gain = paired_difference(drafted, plain)  # how much longer it takes without
    return msgspec.structs.replace(
        found,
        kept=gain.low > 0 and reply.same_output,
        gain_frac=gain.median,
        gain_low_frac=gain.low,
        gain_high_frac=gain.high,
        accepted_frac=reply.n_accepted / reply.n_drafted if reply.n_drafted else None,
        same_output=reply.same_output,
    )


def keep_draft(found: DraftResult, result: SweepResult, store: Store) -> None:
    """Add drafts that proved a gain to the stored profile: its export has them."""
    best = result.recommended
    if found.kept and best is not None and best.profile_id is not None:
        profile = store.profile(best.profile_id)
        store.renew_profile(msgspec.structs.replace(profile, draft=found))


def _failed(found: DraftResult, code: str, message: str) -> DraftTried:
    return DraftTried(
        result=msgspec.structs.replace(found, error=ErrorInfo(code=code, message=message))
    )
