"""Rules on what was measured: spills, resets, throttling, time per submission."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from app.advice.rule import Evidence, Rule, Situation, kind, mib, name_of
from app.domain.finding import Actor, Severity
from app.domain.machine import Gpu, GpuKind, Machine
from app.domain.outcome import Outcome
from app.domain.resets import event_of, moment, reset_between
from app.domain.trial import TelemetryWindow, Trial
from app.domain.units import NS_PER_S
from app.machine import placement, stayed_empty
from app.rig.seen import may_be_full

T = TypeVar("T")

SPILL_BYTES = 64 << 20
LIMIT_SHARE = 0.25
"""One submission should take at most this share of the driver's time limit."""
SMALLEST_UBATCH, LARGEST_UBATCH = 32, 4096
SLOW_FIRST_TOKEN_S = 2.0
FULL_BUSY_PCT = 95.0
SPILL_MEMORY_PCT = 5.0
LOW_BUSY_PCT = 50.0
QUANTISED = ("q4_0", "q4_1", "iq4_nl")


def spilled(now: Situation) -> Iterator[Evidence]:
    """Memory overflowed into the system's RAM while a trial ran."""
    for trial in _of(now, Outcome.SPILLED, Outcome.OK, Outcome.THROTTLED):
        growth = trial.shared_growth_bytes or 0
        if trial.outcome is Outcome.SPILLED or growth > SPILL_BYTES:
            yield {
                "n_gpu_layers": trial.request.settings.n_gpu_layers,
                "growth_mib": mib(growth) if growth else None,
            }
            return


def spill_signature(now: Situation) -> Iterator[Evidence]:
    """Busy all the time while its memory idles: it waits for memory across the bus."""
    for trial in _of(now, Outcome.OK, Outcome.THROTTLED):
        window = trial.telemetry
        busy_times = _of_used(now, trial, window.busy_pct if window is not None else {})
        for key, busy in busy_times.items():
            memory = window.mem_busy_pct.get(key) if window is not None else None
            starved = memory is not None and memory < SPILL_MEMORY_PCT
            if busy >= FULL_BUSY_PCT and starved and _may_be_full(now, key, window):
                yield {"gpu": _name(now, key), "busy_pct": busy, "memory_pct": memory}
                return


def out_of_memory(now: Situation) -> Iterator[Evidence]:
    """A trial ran out of memory."""
    failed = _of(now, Outcome.OUT_OF_MEMORY)
    if failed:
        settings = failed[-1].request.settings
        yield {"count": len(failed), "n_gpu_layers": settings.n_gpu_layers, "n_ctx": settings.n_ctx}


def device_lost(now: Situation) -> Iterator[Evidence]:
    """The driver was reset under the engine."""
    for trial in _of(now, Outcome.DEVICE_LOST):
        yield {
            "device": ", ".join(trial.request.settings.devices) or "GPU",
            "n_ubatch": trial.request.settings.n_ubatch,
            "depth": trial.request.workload.depth,
        }
        return


def reset_in_run(now: Situation) -> Iterator[Evidence]:
    """Windows' log says that the driver was reset while the engine crashed."""
    for trial in _of(now, Outcome.CRASHED, Outcome.DEVICE_LOST, Outcome.TIMED_OUT):
        end = moment(trial.ended_utc)
        if end is None:
            continue
        start = end - timedelta(seconds=trial.elapsed_s)
        reset = reset_between(now.machine.host, start, end)
        if reset is not None:
            settings = trial.request.settings
            yield {
                "event": event_of(reset),
                "time": reset.time_utc,
                "n_gpu_layers": settings.n_gpu_layers,
                "n_ubatch": settings.n_ubatch,
                "device": ", ".join(settings.devices) or "GPU",
            }
            return


def wrong_card(now: Situation) -> Iterator[Evidence]:
    """Weights were to go to one card, but memory rose on another one."""
    for _, devices, growth in _loads(now):
        other, rise = placement(now.machine, devices, growth)
        if other is not None:
            yield {"device": ", ".join(devices), "gpu": name_of(other), "rise_mib": mib(rise)}
            return


def card_stayed_empty(now: Situation) -> Iterator[Evidence]:
    """The engine reports weights on a card whose memory did not rise."""
    for trial, devices, growth in _loads(now):
        found = stayed_empty(now.machine, devices, growth, trial.device_bytes)
        if found is not None:
            gpu, needed = found
            yield {"gpu": name_of(gpu), "need_mib": mib(needed)}
            return


def submission_near_limit(now: Situation) -> Iterator[Evidence]:
    """One prompt batch takes a large part of the time after which the driver is reset."""
    for trial in _of(now, Outcome.OK, Outcome.THROTTLED):
        settings = trial.effective or trial.request.settings
        limit, took = time_limit_s(now.machine, settings.devices), batch_s(trial)
        if limit is None or settings.n_gpu_layers == 0 or took is None:
            continue
        if took > limit * LIMIT_SHARE:
            yield {
                "n_ubatch": settings.n_ubatch,
                "took_s": took,
                "limit_s": limit,
                "better": better_ubatch(settings.n_ubatch, took, limit),
            }
            return


def slow_first_token(now: Situation) -> Iterator[Evidence]:
    """Reading the prompt takes more than two seconds."""
    trial = _last_good(now)
    passes = [s.ns / s.n_tok for s in trial.prefill if s.n_tok] if trial is not None else []
    if trial is None or not passes:
        return
    per_token = min(passes) / NS_PER_S
    seconds = per_token * trial.request.workload.n_prompt
    if seconds > SLOW_FIRST_TOKEN_S:
        yield {"seconds": seconds, "n_prompt": trial.request.workload.n_prompt}


def throttled(now: Situation) -> Iterator[Evidence]:
    """The card slowed itself down while measured."""
    for trial in now.trials:
        window = trial.telemetry
        known = _of_used(now, trial, window.throttle if window is not None else {})
        for key, reasons in known.items():
            hot = [r for r in reasons if r in {"hw_thermal", "sw_thermal", "hw_power_brake"}]
            if hot:
                temp = window.temp_max_c.get(key) if window is not None else None
                yield {"gpu": _name(now, key), "temp_c": temp, "reason": ", ".join(hot)}
                return


def disturbed(now: Situation) -> Iterator[Evidence]:
    """Another program used the card, or the power source changed, while measuring."""
    count = sum(t.telemetry is not None and t.telemetry.disturbed is not None for t in now.trials)
    if count:
        yield {"count": count}


def gpu_waits(now: Situation) -> Iterator[Evidence]:
    """Everything is on the card, yet it idles half of the time."""
    trial = _last_good(now)
    window = trial.telemetry if trial is not None else None
    if trial is None or window is None or _on_cpu(trial, now):
        return
    for key, busy in _of_used(now, trial, window.busy_pct).items():
        if busy < LOW_BUSY_PCT:
            yield {"gpu": _name(now, key), "busy_pct": busy}
            return


def low_precision_cache(now: Situation) -> Iterator[Evidence]:
    """A four-bit cache can change answers."""
    trial = _last_good(now)
    settings = trial.request.settings if trial is not None else None
    if settings is not None and {settings.type_k, settings.type_v} & set(QUANTISED):
        yield {"type_k": settings.type_k, "type_v": settings.type_v}


def time_limit_s(machine: Machine, devices: Sequence[str]) -> float | None:
    """Return after how long a driver resets a submission on ``devices``, seconds.

    ``None`` where nothing resets it, or nothing is known. Windows' timeout is that of display
    drivers: cards under TCC or MCDM have none.
    """
    infos = [g.info for g in machine.gpus if any(d.name in devices for d in g.engine)]
    known = [info for info in infos if info is not None]
    windows = machine.host.windows
    if windows is not None:
        free = bool(known) and all(info.driver_model in {"tcc", "mcdm"} for info in known)
        on = windows.timeout("TdrLevel") != 0 and windows.timeout("TdrDelay")
        return float(windows.timeout("TdrDelay") or 0) if on and not free else None
    limits = [i.compute_timeout_ms / 1000 for i in known if i.compute_timeout_ms is not None]
    return min(limits, default=None)


def batch_s(trial: Trial) -> float | None:
    """Return the time of one physical prompt batch from the measured prefill, seconds."""
    known = [s for s in trial.prefill if s.n_tok > 0]
    if not known:
        return None
    slowest = max(s.ns / s.n_tok for s in known)
    return slowest * min(trial.request.settings.n_ubatch, known[0].n_tok) / NS_PER_S


def largest_ubatch(trial: Trial, limit_s: float) -> int | None:
    """Return the largest ``n_ubatch`` that stays well below a time limit, by measured prefill.

    A power of two up to 4096; ``None`` where even the smallest sensible batch takes too long,
    or no prefill was measured.
    """
    known = [s.ns / s.n_tok for s in trial.prefill if s.n_tok > 0]
    if not known or max(known) <= 0:
        return None
    tokens = int(limit_s * LIMIT_SHARE * NS_PER_S / max(known))
    return min(LARGEST_UBATCH, 1 << tokens.bit_length() - 1) if tokens >= SMALLEST_UBATCH else None


def better_ubatch(n_ubatch: int, took_s: float, limit_s: float) -> int:
    """Return the largest power of two whose batch takes at most a quarter of the limit."""
    size = n_ubatch
    while size > SMALLEST_UBATCH and took_s * size / n_ubatch > limit_s * LIMIT_SHARE:
        size = 1 << (size - 1).bit_length() - 1
    return size


def _loads(now: Situation) -> Iterator[tuple[Trial, tuple[str, ...], dict[str, int]]]:
    """Yield every trial that loaded weights onto devices while the probes watched memory."""
    for trial in _of(now, Outcome.OK, Outcome.THROTTLED, Outcome.SPILLED):
        settings = trial.effective or trial.request.settings
        growth = trial.telemetry.vram_growth_bytes if trial.telemetry is not None else {}
        if trial.load_s is not None and settings.devices and settings.n_gpu_layers and growth:
            yield trial, settings.devices, growth


def _may_be_full(now: Situation, key: str, window: TelemetryWindow | None) -> bool:
    """Whether a card's memory was nearly all in use, as far as that is known."""
    infos = [g.info for g in now.machine.gpus if g.key == key and g.info is not None]
    total = infos[0].vram_total_bytes if infos else None
    return window is None or may_be_full(window, key, total)


def _of_used(now: Situation, trial: Trial, by_gpu: Mapping[str, T]) -> dict[str, T]:
    """Return what was seen of the GPUs that a trial ran on; a card beside them idles rightly."""
    names = (trial.effective or trial.request.settings).devices
    used = {g.key for g in now.machine.gpus if any(d.name in names for d in g.engine)}
    # Of a recording the cards are not known: then all that was seen counts.
    return {key: value for key, value in by_gpu.items() if key in used or not now.machine.gpus}


def _of(now: Situation, *outcomes: Outcome) -> Sequence[Trial]:
    return [trial for trial in now.trials if trial.outcome in outcomes]


def _last_good(now: Situation) -> Trial | None:
    good = _of(now, Outcome.OK, Outcome.THROTTLED)
    return good[-1] if good else None


def _on_cpu(trial: Trial, now: Situation) -> bool:
    settings = trial.effective or trial.request.settings
    layers = now.plan.space.model.n_layer if now.plan is not None else None
    return layers is None or settings.n_gpu_layers <= layers or settings.n_cpu_moe > 0


def _name(now: Situation, key: str) -> str:
    gpu: Gpu | None = next((g for g in now.machine.gpus if g.key == key), None)
    if gpu is None or kind(gpu) is GpuKind.UNKNOWN:
        return key
    return gpu.info.name if gpu.info is not None and gpu.info.name else key


INFO, HINT, WARNING, PROBLEM = Severity
RIGTUNE, USER, NOBODY = Actor
RESULT_RULES = (
    Rule(
        "spilled",
        WARNING,
        RIGTUNE,
        "ggml-org/llama.cpp issue 4498; nvidia.custhelp.com answer 5490",
        spilled,
    ),
    Rule(
        "spill_signature",
        WARNING,
        RIGTUNE,
        "AtomicBot-ai/atomic-llama-cpp-turboquant issue 77",
        spill_signature,
    ),
    Rule(
        "out_of_memory",
        INFO,
        RIGTUNE,
        "llama.cpp src/llama-kv-cache.cpp and graph reserve",
        out_of_memory,
    ),
    Rule(
        "device_lost",
        WARNING,
        RIGTUNE,
        "ggml-org/llama.cpp issue 18523; CUDA error 702",
        device_lost,
    ),
    Rule(
        "reset_in_run",
        WARNING,
        USER,
        "Microsoft, timeout detection and recovery; lmstudio-ai/lmstudio-bug-tracker issue 471",
        reset_in_run,
    ),
    Rule("wrong_card", PROBLEM, NOBODY, "measured memory in use", wrong_card),
    Rule("card_stayed_empty", PROBLEM, USER, "measured memory in use", card_stayed_empty),
    Rule(
        "submission_near_limit",
        HINT,
        RIGTUNE,
        "Microsoft, TDR registry keys; ggml-org/llama.cpp issue 25664",
        submission_near_limit,
    ),
    Rule("slow_first_token", HINT, RIGTUNE, "measured prefill", slow_first_token),
    Rule("throttled", WARNING, RIGTUNE, "nvml.h, clock event reasons", throttled),
    Rule("disturbed", HINT, USER, "measured in the trial's own window", disturbed),
    Rule("gpu_waits", HINT, USER, "nvml.h, nvmlUtilization_t", gpu_waits),
    Rule(
        "low_precision_cache", HINT, USER, "llama.cpp tools/server/README.md", low_precision_cache
    ),
)
