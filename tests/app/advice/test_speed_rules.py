"""Speed against what memory allows: said only where both sides are known and comparable."""

from typing import Any

import msgspec
import pytest

from app.advice.speed_rules import below_ceiling, near_ceiling
from app.domain.outcome import Outcome
from app.domain.settings import Switch
from app.domain.trial import Sample, Trial
from app.domain.units import GIB, NS_PER_S
from tests.fakes import situations as s

RTX_4090, H200, RTX_4060_LAPTOP = 1008.0, 4916.0, 256.0


def told(
    gb_s: float | None, tok_s: float, gib: float = 4.36, bits: float = 4.9, **changes: Any
) -> tuple[bool, bool]:
    """Return whether "near" and "below" are said of one trial on one card."""
    work = {name: changes.pop(name) for name in ("depth", "n_seq") if name in changes}
    model = {"n_expert": changes.pop("n_expert")} if "n_expert" in changes else {}
    outcome = changes.pop("outcome", Outcome.OK)
    made: Trial = s.trial(outcome, **changes)
    request = msgspec.structs.replace(
        made.request, workload=msgspec.structs.replace(made.request.workload, **work)
    )
    decode = (Sample(n_tok=64, ns=int(64 / tok_s * NS_PER_S)),)
    made = msgspec.structs.replace(made, request=request, decode=decode)
    plan = s.plan(
        gpus=(s.gpu(memory_gb_s=gb_s),), file_bytes=int(gib * GIB), bits_per_weight=bits, **model
    )
    now = s.measured(made, situation=plan)
    return bool(list(near_ceiling(now))), bool(list(below_ceiling(now)))


@pytest.mark.parametrize(
    ("gb_s", "tok_s", "gib", "bits", "near", "below"),
    [
        (RTX_4060_LAPTOP, 48.0, 4.36, 4.9, True, False),
        (RTX_4060_LAPTOP, 9.0, 4.36, 4.9, False, True),
        (RTX_4090, 140.0, 4.36, 4.9, False, False),
        (RTX_4090, 14.8, 14.2, 16.0, False, True),
        (RTX_4090, 24.0, 14.2, 16.0, False, True),
        # measured: a small model on a fast card is bound by starting kernels
        (H200, 276.0, 4.36, 4.9, False, False),
        (H200, 4.0, 4.36, 4.9, False, True),
        # more than memory allows is another thing than we think
        (RTX_4060_LAPTOP, 90.0, 4.36, 4.9, False, False),
    ],
)
def test_share_of_the_ceiling(
    gb_s: float, tok_s: float, gib: float, bits: float, near: bool, below: bool
) -> None:
    """Near is said from 80 %, below under 30 % with four bits and 40 % with more."""
    assert told(gb_s, tok_s, gib, bits) == (near, below)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_gpu_layers": 32}, {"n_cpu_moe": 4}, {"offload_kqv": Switch.OFF},
        {"override_tensor": "x=CPU"}, {"devices": ("CUDA0", "CUDA1")}, {"devices": ("Vulkan9",)},
        {"depth": 8192}, {"n_seq": 4}, {"n_expert": 64}, {"outcome": Outcome.THROTTLED},
    ],
)  # fmt: skip
def test_what_is_not_comparable_is_not_compared(changes: dict[str, Any]) -> None:
    """Layers in RAM, several cards, a filled context, experts, a hot card: nothing is said."""
    assert told(RTX_4090, 2.0, **changes) == (False, False)


def test_nothing_is_said_without_a_bandwidth() -> None:
    """Cards whose bus or clock is not told have no ceiling."""
    assert told(None, 2.0) == (False, False)
