"""Rules on measured speed against what reading the weights allows on one card."""

from collections.abc import Iterator
from typing import NamedTuple

from app.advice.rule import Evidence, Rule, Situation, name_of
from app.domain.finding import Actor, Severity
from app.domain.machine import Gpu
from app.domain.outcome import Outcome
from app.domain.settings import Settings, Switch
from app.domain.trial import Trial
from app.domain.units import NS_PER_S

NEAR_SHARE = 0.8
FULL_BITS_SHARE, FEW_BITS_SHARE = 0.4, 0.3
"""Shares of the ceiling that healthy cards reach with large weights, and with four bits."""
FEW_BITS = 5.5
OVERHEAD_S = 0.002
"""What a token may take besides: on a fast card a small model is bound by starting kernels."""


class Reached(NamedTuple):
    """How fast a card wrote, and how fast its memory would let it."""

    gpu: Gpu
    tok_s: float
    ceiling_tok_s: float
    bits: float

    def evidence(self) -> Evidence:
        """Return it as a finding shows it."""
        return {
            "gpu": name_of(self.gpu),
            "tok_s": round(self.tok_s, 1),
            "ceiling_tok_s": round(self.ceiling_tok_s, 1),
            "share_pct": round(100 * self.tok_s / self.ceiling_tok_s),
        }


def near_ceiling(now: Situation) -> Iterator[Evidence]:
    """Only fewer bytes per token would make it faster."""
    best = reached(now)
    if best is not None and NEAR_SHARE <= best.tok_s / best.ceiling_tok_s <= 1:
        yield best.evidence()


def below_ceiling(now: Situation) -> Iterator[Evidence]:
    """So far below has a cause: overflow, another program, heat, power, the driver."""
    best = reached(now)
    if best is None:
        return
    share = FEW_BITS_SHARE if best.bits < FEW_BITS else FULL_BITS_SHARE
    if 1 / best.tok_s > 1 / (best.ceiling_tok_s * share) + OVERHEAD_S:
        yield best.evidence()


def reached(now: Situation) -> Reached | None:
    """Return the best decode of a dense model that lay wholly on one card of known bandwidth."""
    model = now.plan.space.model if now.plan is not None else None
    if model is None or model.n_expert or model.bits_per_weight is None:
        return None
    found = []
    for trial in now.trials:
        settings = trial.effective or trial.request.settings
        gpu = _card(now, settings) if _is_whole(settings, model.n_layer) else None
        speed = _decode_tok_s(trial)
        if gpu is not None and gpu.info is not None and gpu.info.memory_gb_s and speed:
            ceiling = gpu.info.memory_gb_s * 1e9 / model.file_bytes
            found.append(Reached(gpu, speed, ceiling, model.bits_per_weight))
    return max(found, key=lambda one: one.tok_s, default=None)


def _is_whole(settings: Settings, n_layer: int) -> bool:
    split = settings.n_cpu_moe or settings.override_tensor or settings.offload_kqv is Switch.OFF
    return settings.n_gpu_layers > n_layer and not split


def _card(now: Situation, settings: Settings) -> Gpu | None:
    names = settings.devices
    on = [g for g in now.machine.gpus if any(d.name in names for d in g.engine)]
    return on[0] if len(on) == len(names) == 1 else None


def _decode_tok_s(trial: Trial) -> float | None:
    """Return the best pass, as long as the context was empty and nothing slowed it down."""
    work = trial.request.workload
    if trial.outcome is not Outcome.OK or work.depth or work.n_seq != 1:
        return None
    return max((s.n_tok * NS_PER_S / s.ns for s in trial.decode if s.ns > 0), default=None)


SPEED_RULES = (
    Rule(
        "near_ceiling",
        Severity.INFO,
        Actor.NOBODY,
        "memory bus and clock read from the card; bytes of the file",
        near_ceiling,
    ),
    Rule(
        "below_ceiling",
        Severity.HINT,
        Actor.USER,
        "memory bus and clock read from the card; pytorch-labs/gpt-fast README",
        below_ceiling,
    ),
)
