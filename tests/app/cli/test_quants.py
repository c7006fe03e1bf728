"""Which of several files to use."""

import msgspec

from app.cli.quants import Entry, comparison_of
from app.domain.model import ModelSpec, TensorInfo
from app.domain.settings import Settings
from app.domain.sweep import Recommended, SweepResult, SweepStatus
from app.domain.trial import Rate
from tests.fakes.records import a_model


def spec(bits: int, **changes: object) -> ModelSpec:
    """A model of 8,000 weights at ``bits`` each."""
    tensor = TensorInfo(name="w", type="x", shape=(80, 100), n_bytes=1000 * bits)
    changes |= {"tensors": (tensor,), "weights_bytes": 1000 * bits}
    return msgspec.structs.replace(a_model(), **changes)


def entry(name: str, bits: int, decode_tok_s: float, **changes: object) -> Entry:
    rate = Rate(median=decode_tok_s, low=decode_tok_s, high=decode_tok_s)
    best = Recommended(
        settings=Settings(n_gpu_layers=0),
        prefill_tok_s=rate,
        decode_tok_s=rate,
        request_s=100 / decode_tok_s,
        device_bytes={},
        trial=0,
    )
    result = SweepResult(status=SweepStatus.COMPLETE, recommended=best)
    return Entry(model=name, spec=spec(bits, **changes), result=result)


def test_bits_per_weight() -> None:
    """Bytes of the weights over their number."""
    assert spec(5).bits_per_weight == 5.0
    assert a_model().bits_per_weight is None


def test_most_bits_above_the_floor_win() -> None:
    """The best is the finest that is quick enough; the fastest is named, too."""
    entries = [entry("q2", 2, 40.0), entry("q4", 4, 22.0), entry("q8", 8, 9.0)]
    found = comparison_of(entries, None)
    assert (found.fastest, found.best) == (0, 1)
    assert comparison_of(entries, None, 30.0).best == 0
    assert comparison_of(entries, None, 5.0).best == 2
    assert comparison_of(entries, None, 99.0).best is None


def test_different_models_are_not_ranked_by_bits() -> None:
    """Bits per weight compare quantisations of one model, nothing else."""
    found = comparison_of([entry("a", 4, 20.0), entry("b", 8, 30.0, n_layer=9)], None)
    assert found.same_model is False
    assert found.best is None
    assert found.fastest == 1


def test_a_failed_one_stays_in_the_table() -> None:
    """No answer for one file: it is listed without figures, and never chosen."""
    failed = Entry(model="x", spec=spec(16), result=None)
    found = comparison_of([failed, entry("q4", 4, 22.0)], None)
    assert (found.fastest, found.best) == (1, 1)
    assert found.models[0].result is None
