"""What is added to an answer: shares of ceilings; and that nobody waits for it."""

import threading
from collections.abc import Generator

import pytest

from app.domain.events import TrialProgress
from app.domain.settings import Settings
from app.domain.sweep import Recommended, SweepResult, SweepStatus
from app.domain.trial import Rate
from app.rig.process import drain
from app.session.evidence import ceiling_reasons, until_cancelled

PLAIN = Settings(n_gpu_layers=0)
MIB = 1 << 20


def best(decode_tok_s: float | None = 10.0, prefill_tok_s: float | None = 100.0) -> Recommended:
    def rate(value: float | None) -> Rate | None:
        return None if value is None else Rate(median=value, low=value, high=value)

    return Recommended(
        settings=PLAIN,
        prefill_tok_s=rate(prefill_tok_s),
        decode_tok_s=rate(decode_tok_s),
        request_s=1.0,
        device_bytes={},
        trial=0,
    )


def test_share_of_the_ceiling_on_the_cpu() -> None:
    """1,000 MB at 20 GB/s take 50 ms: 10 tok/s are half of the 20 that would allow."""
    weights, read = {"host": 900_000_000}, {"host": 1_000_000_000}
    ceiling, split = ceiling_reasons(best(10.0), weights, read, 20.0, 32 * MIB)
    assert ceiling.code == "cpu_ceiling"
    assert (ceiling.data["ceiling_tok_s"], ceiling.data["share_pct"]) == (20.0, 50)
    assert split.data == {"total_ms": 100.0, "weights_ms": 45.0, "cache_ms": 5.0, "rest_ms": 50.0}


@pytest.mark.parametrize("gpu", [{}, {"CUDA0": 3_000_000_000}])
def test_a_ceiling_that_was_passed_is_none(gpu: dict[str, int]) -> None:
    """RAM seen at 6 GB/s would need 167 ms for 1,000 MB: a token that took 100 refutes it."""
    read = {**gpu, "host": 1_000_000_000}
    assert ceiling_reasons(best(10.0), read, read, 6.0, 32 * MIB) == []
    assert ceiling_reasons(best(10.0), read, read, 9.5, 32 * MIB) != []


def test_layers_in_ram_beside_a_gpu() -> None:
    """The least time that reading RAM takes, of the whole token."""
    read = {"CUDA0": 3_000_000_000, "host": 1_000_000_000}
    (reason,) = ceiling_reasons(best(10.0), read, read, 20.0, 32 * MIB)
    assert reason.code == "ram_token_time"
    assert (reason.data["ram_ms"], reason.data["share_pct"]) == (50.0, 50)


def test_a_gpu_alone_is_told_by_its_own_speed() -> None:
    """Bytes per token times speed; no share, for the card's limit was not measured."""
    read = {"CUDA0": 4_000_000_000, "host": 0}
    (reason,) = ceiling_reasons(best(100.0), read, read, 20.0, None)
    assert (reason.code, reason.data["gb_s"]) == ("gpu_read_rate", 400.0)


def test_no_share_without_a_measurement() -> None:
    """Not measured, or small enough for the cache: no figure is made up."""
    read = {"host": 1_000_000_000}
    assert ceiling_reasons(best(), read, read, None, None) == []
    assert ceiling_reasons(best(), read, read, 20.0, 256 * MIB) == []
    assert ceiling_reasons(best(None), read, read, 20.0, None) == []


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_nobody_waits_for_the_last_look(is_cancelled: bool) -> None:
    """Cancelled, the look ends at its next turn, the answer as it was; else its result counts."""
    cancel = threading.Event()
    before, after = (
        SweepResult(status=SweepStatus.COMPLETE, recommended=None, n_model_loads=n) for n in (1, 2)
    )
    ended = []

    def look() -> Generator[TrialProgress, None, SweepResult]:
        try:
            yield TrialProgress(phase="check")
            yield TrialProgress(phase="check")
        finally:
            ended.append(True)
        return after

    looking = until_cancelled(look(), before, cancel)
    next(looking)
    if is_cancelled:
        cancel.set()
    assert drain(looking) is (before if is_cancelled else after)
    assert ended
