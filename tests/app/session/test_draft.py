"""Whether drafts are kept, and where a draft model may go."""

from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from app.domain.draft import DraftResult
from app.domain.errors import ErrorInfo, UsageProblem
from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.domain.settings import Settings
from app.domain.sweep import Recommended, SweepResult, SweepStatus
from app.domain.trial import Sample
from app.session.draft import check_draft, judged, keep_draft, place
from app.store import Store
from app.worker.protocol import Speculated
from tests.fakes.profiles import PROFILE
from tests.fakes.records import a_model

FOUND = DraftResult(draft="lookup", n_draft=8)
TARGET = Settings(n_gpu_layers=5, devices=("CUDA0",))


def passes(*ms: int) -> tuple[Sample, ...]:
    return tuple(Sample(n_tok=10, ns=m * 1_000_000) for m in ms)


def reply(*drafted_ms: int, same_output: bool = True) -> Speculated:
    return Speculated(
        plain=passes(100, 101, 99, 100, 100),
        drafted=passes(*drafted_ms),
        n_drafted=40,
        n_accepted=20,
        same_output=same_output,
    )


def need(gpu_bytes: int, host_bytes: int = 0, free: int = 1000) -> MemoryEstimate:
    devices = [
        DeviceMemory(device="CUDA0", total_bytes=gpu_bytes, free_bytes=free, headroom_bytes=100),
        DeviceMemory(device="host", total_bytes=host_bytes, free_bytes=free),
    ]
    return MemoryEstimate(devices=tuple(devices), source=MemorySource.DRY_RUN, verdict=Verdict.FITS)


def test_only_a_proven_gain_is_kept() -> None:
    """A clear gain is kept; one whose interval reaches 0 is not, nor a loss."""
    clear = judged(FOUND, reply(60, 61, 59, 60, 60))
    assert clear.kept
    assert clear.gain_frac == pytest.approx(0.667, abs=0.01)
    assert clear.accepted_frac == 0.5
    assert not judged(FOUND, reply(90, 130, 60, 110, 98)).kept
    assert not judged(FOUND, reply(120, 121, 119, 120, 120)).kept


def test_other_output_is_never_kept() -> None:
    """However fast, drafts that change the words are not kept."""
    assert not judged(FOUND, reply(50, 50, 50, 50, 50, same_output=False)).kept


def test_a_draft_model_goes_beside_the_model_only_where_both_fit() -> None:
    """With the headroom left free; else into RAM; else not at all."""

    def on(settings: Settings) -> MemoryEstimate:
        return need(300) if settings.n_gpu_layers else need(0, 300)

    spec = a_model()
    beside = place(spec, TARGET, on, need(600))
    assert isinstance(beside, Settings)
    assert (beside.n_gpu_layers, beside.devices) == (5, ("CUDA0",))
    in_ram = place(spec, TARGET, on, need(601))
    assert isinstance(in_ram, Settings)
    assert (in_ram.n_gpu_layers, in_ram.devices) == (0, ())
    nowhere = place(spec, TARGET, lambda _: need(5000, 5000), need(600))
    assert isinstance(nowhere, ErrorInfo)


@pytest.mark.parametrize("kept", [True, False])
def test_the_profile_keeps_only_a_proven_gain(tmp_path: Path, kept: bool) -> None:
    """What is exported later has the drafts that were kept, and no others."""
    with closing(Store(tmp_path / "store.db")) as store:
        stored = store.save_profile(PROFILE)
        best = Recommended(
            settings=PROFILE.settings, prefill_tok_s=None, decode_tok_s=None, request_s=None,
            device_bytes={}, trial=0, profile_id=stored.id,
        )  # fmt: skip
        result = SweepResult(status=SweepStatus.COMPLETE, recommended=best)
        found = msgspec.structs.replace(FOUND, kept=kept)
        keep_draft(found, result, store)
        assert store.profile(stored.id).draft == (found if kept else None)


def test_prediction_heads_are_refused_with_the_reason() -> None:
    """The engine's binding has no loop for them: said, with what works."""
    with pytest.raises(UsageProblem) as caught:
        check_draft("MTP")
    assert "common" in caught.value.info.message
    assert "lookup" in caught.value.info.hint
    check_draft("lookup")
