"""What is added to an answer: the comparison of outputs, and shares of ceilings."""

import msgspec
import pytest

from app.domain.errors import ErrorInfo
from app.domain.outcome import Outcome
from app.domain.settings import Settings, SplitMode
from app.domain.sweep import Reason, Recommended
from app.domain.trial import Rate
from app.session.evidence import (
    KL_BOUND_NATS,
    MAX_CHECK_TOK,
    MIN_CHECK_TOK,
    ceiling_reasons,
    check_length,
    has_reference,
    output_reasons,
)
from app.worker.protocol import Failed, OutputChecked

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


def apart(kl_nats: float) -> OutputChecked:
    return OutputChecked(kl_mean_nats=kl_nats, kl_max_nats=1.0, same_top=7, n_places=8, n_tok=256)


def codes(reasons: list[Reason]) -> list[str]:
    return [r.code for r in reasons]


@pytest.mark.parametrize(
    ("kl_nats", "code"), [(0.0, "output_same"), (0.1, "output_same"), (0.11, "output_differs")]
)
def test_the_bound_flags_a_setting(kl_nats: float, code: str) -> None:
    """Up to the bound a setting is called harmless, above it flagged; the bound is said."""
    (reason,) = output_reasons(PLAIN, apart(kl_nats))
    assert reason.code == code
    assert reason.data["bound_nats"] == str(KL_BOUND_NATS)


def test_a_quantised_cache_gets_its_note() -> None:
    """Quality of K and V is told with the figure that was measured."""
    found = output_reasons(Settings(n_gpu_layers=0, type_k="q8_0"), apart(0.0012))
    assert codes(found) == ["output_same", "kv_quality"]
    assert found[1].data["kl_nats"] == "0.0012"


def test_what_could_not_be_compared_is_said() -> None:
    """A failed comparison is no comparison passed; without a loaded model there is no word."""
    failed = Failed(outcome=Outcome.CRASHED, error=ErrorInfo(code="x", message="why"))
    assert codes(output_reasons(PLAIN, failed)) == ["output_unchecked"]
    assert output_reasons(PLAIN, None) == []


def test_what_has_nothing_to_be_compared_with_is_no_comparison_passed() -> None:
    """On a load divided by tensor nothing runs without flash attention: no plain cache there."""
    by_tensor = Settings(n_gpu_layers=9, devices=("A", "B"), split_mode=SplitMode.TENSOR)
    assert not has_reference(by_tensor)
    assert codes(output_reasons(by_tensor, None)) == ["output_unchecked"]
    assert has_reference(msgspec.structs.replace(by_tensor, devices=()))  # nothing is divided
    assert has_reference(msgspec.structs.replace(by_tensor, split_mode=SplitMode.ROW))


def test_the_check_stays_short() -> None:
    """A slow model reads fewer tokens."""
    assert check_length(best(prefill_tok_s=1.0)) == MIN_CHECK_TOK
    assert check_length(best(prefill_tok_s=40.0)) == 100
    assert check_length(best(prefill_tok_s=1e4)) == MAX_CHECK_TOK
    assert check_length(best(prefill_tok_s=None)) == MIN_CHECK_TOK


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
