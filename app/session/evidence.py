"""What is looked at once the search has its answer: its output, and how near it is to a limit.

==================== ==================================================================
code                 data
==================== ==================================================================
output_same          kl_nats, bound_nats, n_tok
output_differs       kl_nats, bound_nats, n_tok
output_unchecked     why
kv_quality           type_k, type_v, kl_nats, same_top, n_places
cpu_ceiling          tok_s, ceiling_tok_s, share_pct, gb_s
cpu_token_time       total_ms, weights_ms, cache_ms, rest_ms
ram_token_time       total_ms, ram_ms, share_pct, mib, gb_s
gpu_read_rate        gb_s, mib, device
==================== ==================================================================
"""

from collections.abc import Callable, Generator

import msgspec

from app.domain.events import TrialProgress
from app.domain.machine import HostInfo
from app.domain.settings import Settings, SplitMode
from app.domain.sweep import Reason, Recommended, SweepPlan, SweepResult, SweepStatus
from app.domain.units import GIB, MIB
from app.memory import Memory
from app.rig.workers import WorkerRig
from app.worker.protocol import CheckOutput, Failed, OutputChecked, Reply

# llama.cpp's own table (tools/perplexity/README.md, LLaMA 3 8B): BF16 against FP16 0.00003,
# Q8_0 weights 0.0014, Q4_K_M 0.03, Q3_K_M 0.10. What is worse than that is another model.
KL_BOUND_NATS = 0.1
CHECK_S = 5.0
MAX_CHECK_TOK, MIN_CHECK_TOK = 256, 32
CACHE_FACTOR = 4  # what is not larger than this many last-level caches is served by them in part
SHARE_MAX = 1.1  # a model that reads faster than RAM was seen to: something else read it meanwhile
_FREE_BYTES = 2 * GIB  # a read benchmark must not push the model out of RAM
HOST = "host"
FULL_TYPES = ("f16", "f32", "bf16")
_NO_REFERENCE = "Split mode tensor needs flash attention, which a plain cache is without."

RamRead = Callable[[], float | None]
Looking = Generator[TrialProgress, None, SweepResult]


def with_evidence(
    result: SweepResult,
    plan: SweepPlan,
    rig: WorkerRig,
    memory: Memory,
    host: HostInfo,
    ram_read: RamRead,
) -> Looking:
    """Return ``result`` with the reasons that need another look at the machine.

    Args:
        result: The answer.
        plan: What was timed.
        rig: Where it was measured; its weights may still be loaded.
        memory: What a token reads, per device.
        host: CPU and caches.
        ram_read: Measures how fast RAM is read, 10⁹ bytes per second.
    """
    best = result.recommended
    if best is None or result.status in (SweepStatus.CANCELLED, SweepStatus.FAILED):
        return result
    checked = None
    if has_reference(best.settings):
        question = CheckOutput(settings=best.settings, n_tok=check_length(best))
        checked = yield from rig.ask_loaded(question)
    reasons = [*result.reasons, *output_reasons(best.settings, checked)]
    has_room = (host.ram_available_bytes or 0) > _FREE_BYTES
    gb_s = ram_read() if has_room else None
    yield TrialProgress(phase="check")
    depth, n_seq = plan.workload.depth, plan.workload.n_seq
    weights = memory.token_bytes(best.settings, 0)
    everything = memory.token_bytes(best.settings, depth)
    read = {name: n + (n_seq - 1) * (n - weights[name]) for name, n in everything.items()}
    reasons += ceiling_reasons(best, weights, read, gb_s, host.l3_bytes)
    return msgspec.structs.replace(result, reasons=tuple(reasons))


def check_length(best: Recommended) -> int:
    """Return how many tokens the check may read so that it takes about five seconds."""
    if best.prefill_tok_s is None:
        return MIN_CHECK_TOK
    affordable = int(CHECK_S * best.prefill_tok_s.median / 2)
    return max(MIN_CHECK_TOK, min(MAX_CHECK_TOK, affordable))


def has_reference(settings: Settings) -> bool:
    """Whether a plain f16 cache runs on the same load: divided by tensor, llama.cpp refuses it."""
    return settings.split_mode is not SplitMode.TENSOR or not settings.devices


def output_reasons(settings: Settings, checked: Reply | None) -> list[Reason]:
    """Return what the comparison of outputs says; a quantised cache gets its quality note."""
    if not has_reference(settings):
        return [Reason(code="output_unchecked", data={"why": _NO_REFERENCE})]
    if isinstance(checked, Failed):
        return [Reason(code="output_unchecked", data={"why": checked.error.message})]
    if not isinstance(checked, OutputChecked):
        return []  # nothing was loaded any more
    kl_nats = round(checked.kl_mean_nats, 5)
    code = "output_same" if checked.kl_mean_nats <= KL_BOUND_NATS else "output_differs"
    data: dict[str, str | int | float | None] = {
        "kl_nats": _plain(kl_nats), "bound_nats": _plain(KL_BOUND_NATS), "n_tok": checked.n_tok
    }  # fmt: skip
    found = [Reason(code=code, data=data)]
    if not {settings.type_k, settings.type_v} <= set(FULL_TYPES):
        quality: dict[str, str | int | float | None] = {
            "type_k": settings.type_k,
            "type_v": settings.type_v,
            "kl_nats": _plain(kl_nats),
            "same_top": checked.same_top,
            "n_places": checked.n_places,
        }
        found.append(Reason(code="kv_quality", data=quality))
    return found


def ceiling_reasons(
    best: Recommended,
    weights: dict[str, int],
    read: dict[str, int],
    gb_s: float | None,
    l3_bytes: int | None,
) -> list[Reason]:
    """Return how near the answer is to what reading memory allows.

    Args:
        best: The answer.
        weights: Bytes of weights a token reads, per device (``host`` = CPU).
        read: The same with the cache at the goal's depth.
        gb_s: Measured read speed of RAM, 10⁹ bytes per second; ``None`` = not measured.
        l3_bytes: Last-level cache.
    """
    if best.decode_tok_s is None:
        return []
    total_ms = 1e3 / best.decode_tok_s.median
    gpus = {name: n for name, n in read.items() if name != HOST and n}
    ram = read.get(HOST, 0)
    if len(gpus) == 1 and not ram:
        ((device, n_bytes),) = gpus.items()
        rate = n_bytes * best.decode_tok_s.median / 1e9
        return [_reason("gpu_read_rate", gb_s=_round(rate), mib=n_bytes // MIB, device=device)]
    if not gb_s or ram < CACHE_FACTOR * (l3_bytes or 0) or not ram:
        return []
    ram_ms = ram / gb_s / 1e6
    if ram_ms > SHARE_MAX * total_ms:
        return []
    share = min(100, round(100 * ram_ms / total_ms))
    if gpus:
        data = {"total_ms": _round(total_ms), "ram_ms": _round(ram_ms), "share_pct": share}
        return [_reason("ram_token_time", **data, mib=ram // MIB, gb_s=_round(gb_s))]
    weights_ms = weights[HOST] / gb_s / 1e6
    cache_ms = ram_ms - weights_ms
    return [
        _reason(
            "cpu_ceiling",
            tok_s=_round(best.decode_tok_s.median),
            ceiling_tok_s=_round(1e3 / ram_ms),
            share_pct=share,
            gb_s=_round(gb_s),
        ),
        _reason(
            "cpu_token_time",
            total_ms=_round(total_ms),
            weights_ms=_round(weights_ms),
            cache_ms=_round(cache_ms),
            rest_ms=_round(max(0.0, total_ms - ram_ms)),
        ),
    ]


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def _plain(value: float) -> str:
    """Return a small figure as text: three significant digits would hide it behind a zero."""
    return f"{value:.2g}"


def _reason(code: str, **data: str | float) -> Reason:
    return Reason(code=code, data=dict(data))
