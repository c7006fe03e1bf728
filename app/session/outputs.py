"""Whether an answer leaves what the model says as it is, compared once the search is over.

==================== ==================================================================
code                 data
==================== ==================================================================
output_same          kl_nats, bound_nats, n_tok
output_differs       kl_nats, bound_nats, n_tok
output_beside_cpu    split_mode
output_unchecked     why
kv_quality           type_k, type_v, kl_nats, same_top, n_places
==================== ==================================================================
"""

from collections.abc import Generator

import msgspec

from app.domain.errors import EnvironmentProblem
from app.domain.events import TrialProgress
from app.domain.memory import Verdict
from app.domain.settings import FlashAttn, LoadMode, Settings, SplitMode, Switch
from app.domain.sweep import Reason, Recommended
from app.rig.workers import WorkerRig
from app.session.loading import load
from app.worker.protocol import CheckOutput, Failed, OutputChecked, Reply

# llama.cpp's own table (tools/perplexity/README.md, LLaMA 3 8B): BF16 against FP16 0.00003,
# Q8_0 weights 0.0014, Q4_K_M 0.03, Q3_K_M 0.10. What is worse than that is another model.
KL_BOUND_NATS = 0.1
CHECK_S = 5.0
MAX_CHECK_TOK, MIN_CHECK_TOK = 256, 32
FULL_TYPES = ("f16", "f32", "bf16")


def compare_output(
    best: Recommended, rig: WorkerRig
) -> Generator[TrialProgress, None, list[Reason]]:
    """Return what the comparison of the answer's output with a plain f16 cache says.

    Args:
        best: The answer; its weights are loaded again where those that are loaded say nothing.
        rig: Where it was measured.
    """
    try:
        return (yield from _compared(best, rig))
    except EnvironmentProblem as problem:  # the answer stands without it
        return [_unchecked(problem.info.message)]


def _compared(best: Recommended, rig: WorkerRig) -> Generator[TrialProgress, None, list[Reason]]:
    settings = best.settings
    reference = reference_of(settings)
    if reference is not None:
        need = rig.dry_run(reference)
        if need.verdict is Verdict.DOES_NOT_FIT:
            return [_unchecked(need.note or "RAM does not hold a second copy of the model.")]
    if rig.loaded is None or not stands_in(rig.loaded, settings):
        failed = yield from load(settings, rig, "check")
        if failed is not None:
            return [_unchecked(failed.message)]
    n_tok = check_length(best) if reference is None else MIN_CHECK_TOK
    question = CheckOutput(settings=settings, n_tok=n_tok, reference=reference)
    reply = yield from rig.ask_loaded(question)
    return output_reasons(settings, reply)


def stands_in(loaded: Settings, settings: Settings) -> bool:
    """Whether the weights of ``loaded`` show what ``settings`` do: the same devices compute them.

    More or fewer layers on the devices are no other arithmetic, and no load is spent for them.
    """
    same = ("devices", "split_mode", "override_tensor")
    is_same = all(getattr(loaded, name) == getattr(settings, name) for name in same)
    return is_same and bool(loaded.n_gpu_layers) == bool(settings.n_gpu_layers)


def reference_of(settings: Settings) -> Settings | None:
    """Return what must be loaded beside ``settings`` to compare them; ``None`` = nothing.

    Divided by tensor, llama.cpp refuses a cache without flash attention, and what devices compute
    together is in question itself. The CPU alone is the reference then.
    """
    if settings.split_mode is not SplitMode.TENSOR or not settings.devices:
        return None
    return msgspec.structs.replace(
        settings,
        n_gpu_layers=0, n_cpu_moe=0, override_tensor="", devices=(), tensor_split="",
        split_mode=SplitMode.LAYER, load_mode=LoadMode.MMAP, type_k="f16", type_v="f16",
        flash_attn=FlashAttn.OFF, n_threads=0, n_threads_batch=0, offload_kqv=Switch.ON,
        n_ctx=512, n_batch=512, n_ubatch=512, n_seq_max=1,
    )  # fmt: skip


def check_length(best: Recommended) -> int:
    """Return how many tokens the check may read so that it takes about five seconds."""
    if best.prefill_tok_s is None:
        return MIN_CHECK_TOK
    affordable = int(CHECK_S * best.prefill_tok_s.median / 2)
    return max(MIN_CHECK_TOK, min(MAX_CHECK_TOK, affordable))


def output_reasons(settings: Settings, checked: Reply | None) -> list[Reason]:
    """Return what the comparison of outputs says; a quantised cache gets its quality note."""
    if isinstance(checked, Failed):
        return [_unchecked(checked.error.message)]
    if not isinstance(checked, OutputChecked):
        return [_unchecked("The model could not be loaded again.")]
    kl_nats = _plain(round(checked.kl_mean_nats, 5))
    code = "output_same" if checked.kl_mean_nats <= KL_BOUND_NATS else "output_differs"
    data: dict[str, str | int | float | None] = {
        "kl_nats": kl_nats, "bound_nats": _plain(KL_BOUND_NATS), "n_tok": checked.n_tok
    }  # fmt: skip
    found = [Reason(code=code, data=data)]
    if reference_of(settings) is not None:
        found.append(Reason(code="output_beside_cpu", data={"split_mode": settings.split_mode}))
    if not {settings.type_k, settings.type_v} <= set(FULL_TYPES):
        quality: dict[str, str | int | float | None] = {
            "type_k": settings.type_k,
            "type_v": settings.type_v,
            "kl_nats": kl_nats,
            "same_top": checked.same_top,
            "n_places": checked.n_places,
        }
        found.append(Reason(code="kv_quality", data=quality))
    return found


def _unchecked(why: str) -> Reason:
    return Reason(code="output_unchecked", data={"why": why})


def _plain(value: float) -> str:
    """Return a small figure as text: three significant digits would hide it behind a zero."""
    return f"{value:.2g}"
