"""One line per trial says what really ran."""

from msgspec.structs import replace

from app.cli.progress import trial_line
from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, Settings
from app.domain.trial import Sample, Trial, TrialRequest, Workload

ASKED = Settings(n_gpu_layers=0, n_ctx=512, n_threads=2, n_seq_max=4, flash_attn=FlashAttn.AUTO)


def line(effective: Settings | None, n_seq: int = 1) -> str:
    request = TrialRequest(stage="bench", settings=ASKED, workload=Workload(n_seq=n_seq))
    samples = (Sample(n_tok=64, ns=1_000_000_000),) * 3
    trial = Trial(
        request=request, load_id=1, outcome=Outcome.OK, effective=effective,
        prefill=samples, decode=samples,
    )  # fmt: skip
    return trial_line(0, trial)


def test_the_line_shows_what_the_engine_used() -> None:
    """A context the engine rounded up and an ``auto`` it resolved are shown as they were."""
    used = replace(ASKED, n_ctx=1024, flash_attn=FlashAttn.OFF)
    assert "ctx 1024" in line(used)
    assert "flash attention off" in line(used)
    assert "ctx 512" in line(None)


def test_speeds_of_several_sequences_are_said_to_be_each_ones() -> None:
    """Samples count the tokens of one sequence; the line must not read as a total."""
    assert "each of 4 sequences" in line(ASKED, n_seq=4)
    assert "sequence" not in line(ASKED)
