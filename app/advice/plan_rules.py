"""Rules on a plan before anything is loaded: memory, context, RAM."""

from collections.abc import Iterator

from app.advice.rule import Evidence, Rule, Situation, gib, mib
from app.domain.finding import Actor, Severity
from app.domain.memory import DeviceMemory, Verdict

KV_SHARE = 0.25
RAM_SHARE = 0.9
FEW_BITS = 4.0
TERNARY = ("TQ1", "TQ2")
"""Types of models whose weights are -1, 0 and 1 by training."""


def context_takes_layers(now: Situation) -> Iterator[Evidence]:
    """Not all layers fit, and the context holds much of the card."""
    plan = now.plan
    if plan is None or plan.max_n_gpu_layers > plan.space.model.n_layer:
        return
    for device in _cards(now):
        kv = (device.kv_cache_bytes or 0) + (device.recurrent_state_bytes or 0)
        if device.total_bytes > 0 and kv > device.total_bytes * KV_SHARE:
            share = round(100 * kv / device.total_bytes)
            yield {"n_ctx": plan.n_ctx, "kv_mib": mib(kv), "share_pct": share}


def context_beyond_training(now: Situation) -> Iterator[Evidence]:
    """The context is longer than the model was trained for."""
    plan = now.plan
    trained = plan.space.model.n_ctx_train if plan is not None else None
    if plan is not None and trained is not None and plan.n_ctx > trained:
        yield {"n_ctx": plan.n_ctx, "n_ctx_train": trained}


def larger_than_memory(now: Situation) -> Iterator[Evidence]:
    """Weights exceed RAM and cards together: they would be read from disk for every token."""
    plan, ram = now.plan, now.machine.host.ram_available_bytes
    if plan is None or ram is None:
        return
    cards = sum(d.free_bytes for d in plan.space.devices if d.kind == "discrete")
    if plan.space.model.file_bytes > ram + cards:
        yield {"model_gib": gib(plan.space.model.file_bytes), "memory_gib": gib(ram + cards)}


def fills_ram(now: Situation) -> Iterator[Evidence]:
    """What does not fit the card fills most of the free RAM."""
    plan, ram = now.plan, now.machine.host.ram_available_bytes
    if plan is None or plan.first is None or not ram:
        return
    host = next((d for d in plan.first.devices if d.device == "host"), None)
    if host is not None and ram * RAM_SHARE < host.total_bytes <= ram:
        yield {"need_gib": gib(host.total_bytes), "available_gib": gib(ram)}


def barely_fits(now: Situation) -> Iterator[Evidence]:
    """The configuration fits with less than the headroom to spare."""
    for device in _cards(now):
        if device.verdict is Verdict.TIGHT:
            free = (device.free_bytes or 0) - device.total_bytes
            yield {
                "device": device.device,
                "left_mib": max(0, mib(free)),
                "headroom_mib": mib(device.headroom_bytes),
            }


def few_bits(now: Situation) -> Iterator[Evidence]:
    """Weights of fewer than four bits lose quality, unless the model was trained with them."""
    model = now.plan.space.model if now.plan is not None else None
    if model is None or model.bits_per_weight is None:
        return
    quant = model.quant or ""
    if 0 < model.bits_per_weight < FEW_BITS and not quant.startswith(TERNARY):
        yield {"bits": model.bits_per_weight, "quant": model.quant}


def measured_on_battery(now: Situation) -> Iterator[Evidence]:
    """A search on battery finds settings for battery power."""
    if now.plan is not None and now.machine.host.power_source.value == "battery":
        yield {}


def _cards(now: Situation) -> tuple[DeviceMemory, ...]:
    first = now.plan.first if now.plan is not None else None
    return tuple(d for d in first.devices if d.device != "host") if first is not None else ()


INFO, HINT, WARNING, PROBLEM = Severity
RIGTUNE, USER, NOBODY = Actor
PLAN_RULES = (
    Rule(
        "context_takes_layers",
        HINT,
        RIGTUNE,
        "llama.cpp src/llama-kv-cache.cpp: the context is reserved in full",
        context_takes_layers,
    ),
    Rule(
        "context_beyond_training",
        WARNING,
        USER,
        "the model's own context_length",
        context_beyond_training,
    ),
    Rule(
        "larger_than_memory",
        WARNING,
        USER,
        "arithmetic: weights against free memory",
        larger_than_memory,
    ),
    Rule("fills_ram", HINT, USER, "arithmetic: dry run against free memory", fills_ram),
    Rule(
        "barely_fits",
        HINT,
        RIGTUNE,
        "llama.cpp tools/fit-params/README.md; ollama/ollama issue 16725",
        barely_fits,
    ),
    Rule("few_bits", HINT, USER, "llama.cpp tools/quantize/README.md", few_bits),
    Rule("battery_search", HINT, USER, "NVIDIA driver README, Dynamic Boost", measured_on_battery),
)
