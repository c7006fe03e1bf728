"""What trials of two engines say about a profile, and when its figures are renewed."""

import msgspec
import pytest

from app.domain.errors import ErrorInfo
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import GOAL_WORKLOADS, Goal
from app.domain.trial import Sample, Trial, TrialRequest, Workload
from app.session.engine_verdict import judge, renewed, workload_of
from app.store import Profile

SETTINGS = Settings(n_gpu_layers=7, n_ctx=4096)
PROFILE = Profile(
    id="p", name="mine", settings=SETTINGS, goal=Goal.CHAT, engine="old build", request_s=9.0,
    model_fingerprint="f", model_name="m", model_path="m.gguf",
)  # fmt: skip
WORK = GOAL_WORKLOADS[Goal.CHAT]
NOISE = (1.0, 1.004, 0.997)


def trial(load_id: int, tok_s: float, workload: Workload = WORK) -> Trial:
    """Return a finished trial of three passes that differ by a little."""
    samples = tuple(Sample(n_tok=100, ns=round(100e9 / tok_s * n)) for n in NOISE)
    request = TrialRequest(stage="engine", settings=SETTINGS, workload=workload)
    return Trial(
        request=request, load_id=load_id, outcome=Outcome.OK, effective=SETTINGS,
        prefill=samples, decode=samples, elapsed_s=1.0, ended_utc="",
    )  # fmt: skip


def failed(load_id: int) -> Trial:
    error = ErrorInfo(code="out_of_memory", message="It did not fit.", hint="")
    empty = msgspec.structs.replace(trial(load_id, 1.0), prefill=(), decode=())
    return msgspec.structs.replace(empty, outcome=Outcome.OUT_OF_MEMORY, error=error)


@pytest.mark.parametrize(
    ("now_tok_s", "verdict"), [(50.0, "same"), (35.0, "slower"), (70.0, "faster")]
)
def test_two_engines_are_compared(now_tok_s: float, verdict: str) -> None:
    """Figures are renewed unless the engine of today is slower: the last good ones stay."""
    current = [trial(2, now_tok_s), trial(3, now_tok_s)]
    found = judge(PROFILE, (), current, [trial(1, 50.0), trial(4, 50.0)])
    assert (found.verdict, found.against) == (verdict, "previous")
    new = renewed(PROFILE, found, "new build")
    assert (new is None) == (verdict == "slower")
    if new is not None:
        assert new.engine == "new build"
        assert new.request_s == pytest.approx((WORK.n_prompt + WORK.n_gen) / now_tok_s, rel=0.01)


def test_what_fails_now_is_broken() -> None:
    """One load of two that fails is enough; the reason is told and nothing is renewed."""
    found = judge(PROFILE, (), [trial(2, 50.0), failed(3)], [trial(1, 50.0), trial(4, 50.0)])
    assert found.verdict == "broken"
    assert found.error is not None
    assert found.error.code == "out_of_memory"
    assert renewed(PROFILE, found, "new build") is None


def test_no_trial_at_all_is_broken() -> None:
    """An engine that did not start has no trials."""
    assert judge(PROFILE, (), [], [trial(1, 50.0)]).verdict == "broken"


def test_an_earlier_engine_that_fails_is_no_reference() -> None:
    """Then the search's own trials of the same workload are, and without them nothing is."""
    current = [trial(2, 50.0), trial(3, 50.0)]
    stored = [trial(1, 80.0), trial(2, 20.0, Workload(n_prompt=1, n_gen=1))]
    found = judge(PROFILE, stored, current, [failed(1), trial(4, 50.0)])
    assert (found.verdict, found.against) == ("slower", "stored")
    alone = judge(PROFILE, (), current, [failed(1)])
    assert (alone.verdict, alone.against) == ("first", None)
    assert renewed(PROFILE, alone, "new build") is not None


def test_the_workload_is_the_one_the_profile_was_timed_with() -> None:
    """Screening with a short answer is not it; without trials it is the goal's, cut to fit."""
    short = Workload(n_prompt=512, n_gen=32)
    assert workload_of(PROFILE, [trial(1, 1.0), trial(2, 1.0, short)]) == WORK
    small = msgspec.structs.replace(PROFILE, settings=Settings(n_gpu_layers=0, n_ctx=1024))
    assert workload_of(small, []) == msgspec.structs.replace(WORK, depth=256)
    other = msgspec.structs.replace(PROFILE, settings=Settings(n_gpu_layers=0, n_ctx=512))
    assert workload_of(other, [trial(1, 1.0)]).depth == 0
