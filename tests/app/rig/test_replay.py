"""A replay answers as its file says: look-up rules, virtual clock, noise, memory."""

import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.memory import Verdict
from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, Settings
from app.domain.trial import TrialRequest, Workload
from app.rig.replay import ReplayRig
from app.rig.replay_check import check_replay, read_replay
from app.rig.replay_file import check_target, write_replay
from app.sweep.stats import seconds_per_token
from tests.fakes.rigs import GOLDEN, point, replay, run_one

FORMAT_FILE = GOLDEN / "format.json"


def settings(layers: int, **changes: Any) -> Settings:
    return msgspec.structs.replace(Settings(n_gpu_layers=layers, n_threads=4), **changes)


def request(layers: int, depth: int = 0, **changes: Any) -> TrialRequest:
    return TrialRequest(
        stage="layers", settings=settings(layers, **changes), workload=Workload(depth=depth)
    )


def decode_tok_s(rig: ReplayRig, asked: TrialRequest) -> float | None:
    truth = rig.truth(asked.settings, asked.workload.depth)
    return None if truth is None else truth.decode_tok_s


def test_exact_point() -> None:
    """A recorded configuration gives its recorded speeds and bytes."""
    rig = ReplayRig(FORMAT_FILE)
    trial = run_one(rig, request(8))
    assert trial.outcome is Outcome.OK
    assert fmean(seconds_per_token(trial.decode)) == pytest.approx(1 / 40, rel=1e-3)
    assert fmean(seconds_per_token(trial.prefill)) == pytest.approx(1 / 400, rel=1e-3)
    assert trial.device_bytes == {"gpu0": 1_200_000_000}


def test_auto_means_on_and_zero_threads_the_cores() -> None:
    """Flash attention ``auto`` finds the points with it on; 0 threads asks for the cores."""
    rig = ReplayRig(FORMAT_FILE)
    trial = run_one(rig, request(8, flash_attn=FlashAttn.AUTO, n_threads=0))
    assert trial.effective is not None
    assert trial.effective.flash_attn is FlashAttn.ON
    assert trial.effective.n_threads == 4
    assert trial.effective.devices == ("gpu0",)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"n_threads": 6}, 10.0), ({"n_threads": 7}, 8.0), ({"n_ubatch": 600}, 10.0)],
)
def test_nearest_batch_and_threads(changes: dict[str, int], expected: float) -> None:
    """A missing thread count or batch takes the nearest recorded one, the smaller on a tie."""
    assert decode_tok_s(ReplayRig(FORMAT_FILE), request(0, **changes)) == expected


def test_between_layers_in_seconds_per_token() -> None:
    """Half way between 10 and 40 tok/s lie 0.0625 s per token; bytes are half way too."""
    rig = ReplayRig(FORMAT_FILE)
    assert decode_tok_s(rig, request(4)) == pytest.approx(1 / 0.0625)
    assert rig.dry_run(settings(4)).device_bytes() == {"gpu0": 800_000_000}


@pytest.mark.parametrize(("depth", "expected"), [(1024, 1 / 0.0375), (9000, 20.0)])
def test_along_depth(depth: int, expected: float) -> None:
    """Depth is interpolated, and beyond the recorded range the nearest counts."""
    assert decode_tok_s(ReplayRig(FORMAT_FILE), request(8, depth)) == pytest.approx(expected)


def test_along_expert_layers() -> None:
    """Expert layers on the CPU are interpolated last."""
    rig = ReplayRig(
        replay(
            [point(9, 20.0, 4_000, n_cpu_moe=4), point(9, 10.0, 2_000, n_cpu_moe=8)],
            n_layer=8,
            free_bytes=10**9,
        )
    )
    assert decode_tok_s(rig, request(9, n_cpu_moe=6)) == pytest.approx(1 / 0.075)
    assert decode_tok_s(rig, request(9, n_cpu_moe=2)) is None


@pytest.mark.parametrize(
    "changes", [{"n_ctx": 8192}, {"type_k": "q4_0"}, {"flash_attn": FlashAttn.OFF}]
)
def test_other_misses_are_unsupported(changes: dict[str, Any]) -> None:
    """What is not recorded is unsupported and does not fit; nothing is invented."""
    rig = ReplayRig(FORMAT_FILE)
    assert run_one(rig, request(4, **changes)).outcome is Outcome.UNSUPPORTED
    estimate = rig.dry_run(settings(4, **changes))
    assert (estimate.verdict, estimate.note) == (Verdict.DOES_NOT_FIT, "not recorded")


def test_absent_settings_match_any_value() -> None:
    """A point that names only its layers answers for every batch, context and cache type."""
    rig = ReplayRig(replay([point(3, 30.0, 1)], n_layer=8, free_bytes=10**9))
    asked = request(3, n_ubatch=128, n_ctx=12345, type_k="q8_0", type_v="q8_0")
    assert decode_tok_s(rig, asked) == 30.0


def test_interpolated_need_beyond_a_failure_fails() -> None:
    """Between a good and a failed point: out of memory from the smallest failed need on."""
    points = [
        point(0, 10.0, 0),
        point(4, 20.0, 4_000),
        point(8, None, 6_000),
        point(9, None, 9_000),
    ]
    rig = ReplayRig(replay(points, n_layer=8, free_bytes=10**9))
    assert run_one(rig, request(8)).outcome is Outcome.OUT_OF_MEMORY
    truth = rig.truth(settings(7), 0)
    assert truth is not None
    assert truth.device_bytes == {"gpu0": 5_500}
    assert truth.decode_tok_s is None


def test_dry_run_judges_headroom() -> None:
    """Fits with 256 MiB to spare, tight with less, and the user's own headroom replaces it."""
    rig = ReplayRig(FORMAT_FILE)
    assert rig.dry_run(settings(8)).verdict is Verdict.FITS
    assert rig.dry_run(settings(9)).verdict is Verdict.TIGHT
    assert ReplayRig(FORMAT_FILE, headroom_bytes=0).dry_run(settings(9)).verdict is Verdict.FITS
    strict = ReplayRig(FORMAT_FILE, headroom_bytes=900_000_000)
    assert strict.dry_run(settings(8)).verdict is Verdict.TIGHT


def test_refused_configuration_is_no_exception() -> None:
    """A configuration the engine refused has a verdict and a note."""
    asked = settings(9, flash_attn=FlashAttn.OFF, type_k="q8_0", type_v="q8_0")
    estimate = ReplayRig(FORMAT_FILE).dry_run(asked)
    assert estimate.verdict is Verdict.DOES_NOT_FIT
    assert estimate.note == "load failed"


def test_clock_counts_loads_and_passes() -> None:
    """A second trial on the same weights costs no load; other layers do; failures cost one."""
    rig = ReplayRig(FORMAT_FILE)
    first = run_one(rig, request(8))
    second = run_one(rig, request(8, n_ubatch=1024))
    third = run_one(rig, request(9))
    fourth = run_one(rig, request(9))
    assert [t.load_id for t in (first, second, third, fourth)] == [1, 1, 2, 3]
    assert (first.load_s, second.load_s, third.load_s) == (2.5, None, 2.5)
    # 2 warm-ups + 3 prefills of 512 tokens at 400 tok/s, 8 + 3 × 64 tokens at 40 tok/s
    assert first.elapsed_s == pytest.approx(2.5 + 5 * 512 / 400 + (8 + 3 * 64) / 40, rel=1e-6)
    assert third.elapsed_s == 2.5
    assert rig.now_s() == pytest.approx(sum(t.elapsed_s for t in (first, second, third, fourth)))


def test_slow_decode_ends_after_two_seconds() -> None:
    """A decode sample is 64 tokens or 2 s, but not less than 8 tokens."""
    rig = ReplayRig(
        replay([point(0, 10.0, 0), point(1, 2.0, 0)], n_layer=8, free_bytes=10**9, noise_frac=0)
    )
    assert run_one(rig, request(0)).decode[0].n_tok == 20
    assert run_one(rig, request(1)).decode[0].n_tok == 8


def test_noise_is_seeded_and_as_wide_as_stated() -> None:
    """Samples scatter by ``noise_frac``; the same seed repeats them, another does not."""
    recording = replay([point(0, 100.0, 0)], n_layer=8, free_bytes=10**9, noise_frac=0.05)
    asked = msgspec.structs.replace(request(0), min_reps=200, max_reps=200)
    times = seconds_per_token(run_one(ReplayRig(recording), asked).decode)
    assert stdev(times) / fmean(times) == pytest.approx(0.05, rel=0.2)
    assert seconds_per_token(run_one(ReplayRig(recording), asked).decode) == times
    assert seconds_per_token(run_one(ReplayRig(recording, seed=8), asked).decode) != times


def test_write_and_read_again(tmp_path: Path) -> None:
    """What is written is read back the same, plain and compressed."""
    recording = read_replay(FORMAT_FILE)
    for name in ("copy.json", "copy.json.gz"):
        write_replay(recording, tmp_path / name)
        assert read_replay(tmp_path / name) == recording


def damaged(**changes: Any) -> bytes:
    document = json.loads(FORMAT_FILE.read_text())
    document["points"] = document["points"][:1]
    for path, value in changes.items():
        *parents, last = path.split("__")
        spot = document
        for name in parents:
            spot = spot[int(name)] if name.isdigit() else spot[name]
        spot[last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated"),
        (b"[]", "object"),
        (b'{"format": 1}', "format"),
        (b"\xff\xfe{}", ""),
        (damaged(format="rigtune-replay/9"), "rigtune-replay/9"),
        (damaged(points=[]), "no points"),
        (damaged(noise_frac=-0.1), "noise_frac"),
        (damaged(load_s=-1), "load_s"),
        (damaged(model__n_layer=0), "layers"),
        (damaged(points__0__decode_tok_s=0), "decode_tok_s"),
        (damaged(points__0__depth=-1), "depth"),
        (damaged(points__0__device_bytes={"gpu9": 1}), "gpu9"),
        (damaged(points__0__settings={"ngl": 3}), "ngl"),
        (damaged(points__0__settings={"n_gpu_layers": "all"}), "n_gpu_layers"),
        (damaged(points__0__outcome="fine"), "outcome"),
    ],
)
def test_bad_files_end_in_a_sentence(tmp_path: Path, data: bytes, words: str) -> None:
    """A file that is not a usable recording is named with what is wrong with it."""
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    with pytest.raises(EnvironmentProblem) as caught:
        ReplayRig(path)
    assert caught.value.info.code == "replay_invalid"
    assert words in caught.value.info.message


def test_missing_and_torn_files(tmp_path: Path) -> None:
    """A missing file and a cut-off archive are problems of the environment, not crashes."""
    with pytest.raises(EnvironmentProblem, match="cannot be read"):
        ReplayRig(tmp_path / "none.json")
    torn = tmp_path / "torn.json.gz"
    write_replay(read_replay(FORMAT_FILE), torn)
    torn.write_bytes(torn.read_bytes()[:-20])
    with pytest.raises(EnvironmentProblem):
        ReplayRig(torn)


def test_damaged_gzip_is_a_sentence(tmp_path: Path) -> None:
    """A cut or flipped compressed recording is refused, not a traceback."""
    whole = (GOLDEN / "fits_33.json.gz").read_bytes()
    flipped = bytearray(whole)
    flipped[len(flipped) // 2] ^= 0xFF
    for n, data in enumerate((whole[: len(whole) // 2], bytes(flipped), b"\x1f\x8b\x08", b"no")):
        path = tmp_path / f"{n}.json.gz"
        path.write_bytes(data)
        with pytest.raises(EnvironmentProblem) as caught:
            read_replay(path)
        assert caught.value.info.code == "replay_invalid"


def test_recording_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    """A folder that is not there is named before and while the recording is written."""
    path = tmp_path / "none" / "out.json"
    made = replay([point(0, 10.0, 0)], n_layer=4, free_bytes=1)
    with pytest.raises(EnvironmentProblem) as before:
        check_target(path)
    with pytest.raises(EnvironmentProblem) as after:
        write_replay(made, path)
    assert (before.value.info.code, after.value.info.code) == ("not_writable", "not_writable")


@pytest.mark.parametrize("changes", [{"n_layer": 513}, {"n_ctx_train": 0}, {"n_ctx_train": -1}])
def test_impossible_model_is_refused(changes: dict[str, int]) -> None:
    """A recording of a model that cannot be is unusable."""
    made = replay([point(0, 10.0, 0)], n_layer=4, free_bytes=1)
    model = msgspec.structs.replace(made.model, **changes)
    assert check_replay(msgspec.structs.replace(made, model=model)) is not None
