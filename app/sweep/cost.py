"""What a trial costs, and how it is made affordable on a slow machine."""

import msgspec

from app.domain.sweep import SearchSpace
from app.domain.trial import Trial, Workload
from app.sweep.stats import seconds_per_token

DECODE_SAMPLE_S = 2.0
MIN_DECODE_TOK = 8


def timed_s(workload: Workload, speed: tuple[float, float], reps: int) -> float:
    """Return the seconds of filling, warm-ups and ``reps`` passes at ``speed`` (s per token)."""
    prefill_s, decode_s = speed
    decode = min(workload.n_gen * decode_s, max(DECODE_SAMPLE_S, MIN_DECODE_TOK * decode_s))
    prompt = workload.n_prompt * prefill_s
    fill = workload.depth * prefill_s
    return fill + 2 * prompt + MIN_DECODE_TOK * decode_s + reps * (prompt + decode)


def affordable(workload: Workload, speed: tuple[float, float], limit_s: float) -> Workload:
    """Return ``workload``, made shallower and shorter until three passes take ``limit_s``."""
    while timed_s(workload, speed, 3) > limit_s:
        if workload.depth > workload.n_prompt:
            workload = msgspec.structs.replace(workload, depth=workload.depth // 2)
        elif workload.n_prompt > 64:
            workload = msgspec.structs.replace(workload, n_prompt=workload.n_prompt // 2)
        elif workload.depth:
            workload = msgspec.structs.replace(workload, depth=0)
        else:
            break
    return workload


def fastest(trial: Trial) -> tuple[float, float]:
    """Return the least seconds per token (prefill, decode) of a trial's passes."""
    return min(seconds_per_token(trial.prefill)), min(seconds_per_token(trial.decode))


def streamed_tok_s(space: SearchSpace, over_bytes: int) -> float:
    """Return the tokens per second that reading what is missing of ``over_bytes`` leaves, at most.

    The file's rate is that of the expected load. Every token needs all but the experts, so these
    are what is missing first; of them it reads only the share it uses.
    """
    model = space.model
    bytes_s = model.file_bytes / max(space.load_s, 0.1)
    experts = min(over_bytes, model.expert_bytes)
    used = (model.n_expert_used or model.n_expert) / max(model.n_expert, 1)
    return bytes_s / (over_bytes - experts + experts * used)
