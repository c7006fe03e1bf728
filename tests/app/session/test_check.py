"""A command line beside the search's answer, on a recorded machine."""

import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from app.domain.check import Checked, CheckVerdict
from app.domain.errors import UsageProblem
from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, LoadMode
from app.domain.sweep import BudgetName, SweepRequest
from app.export import read_command
from app.rig.replay import ReplayRig
from app.session.check import CommandChecked, and_check
from app.session.command_settings import Resolved, resolve
from app.session.searching import replay_and_check
from app.session.tuning import follow
from app.sweep.plan import make_plan

REPLAYS = Path(__file__).parents[2] / "golden" / "replays"


def unpacked(name: str, folder: Path) -> Path:
    path = folder / f"{name}.json"
    path.write_bytes(gzip.decompress((REPLAYS / f"{name}.json.gz").read_bytes()))
    return path


def resolved(tmp_path: Path, flags: str, name: str = "partial_33", n_seq: int = 1) -> Resolved:
    rig = ReplayRig(unpacked(name, tmp_path))
    return resolve(read_command(f"llama-server {flags}"), rig.space(), rig.dry_run, n_seq)


def checked(tmp_path: Path, flags: str, name: str = "partial_33") -> Checked:
    rig = ReplayRig(unpacked(name, tmp_path))
    plan = make_plan(SweepRequest(budget=BudgetName.QUICK), rig.space(), rig.dry_run)
    cancel = threading.Event()
    events = follow(plan, rig, cancel)
    command = read_command(f"llama-server {flags}")
    *_, last = and_check(events, plan, rig, command, cancel)
    assert isinstance(last, CommandChecked)
    return last.check


def codes(found: Any) -> list[str]:
    return [note.code for note in found.notes]


def test_a_worse_command_is_called_slower(tmp_path: Path) -> None:
    """Fewer layers than fit: slower beyond noise, and the difference is named."""
    check = checked(tmp_path, "-ngl 12 -c 4096 -np 1")
    assert check.verdict is CheckVerdict.SLOWER
    assert check.slower_low_frac is not None
    assert check.slower_low_frac > 0.02
    assert [(d.name, d.theirs) for d in check.differences] == [("n_gpu_layers", "12")]
    assert check.theirs.outcome is Outcome.OK
    assert check.n_model_loads <= 4


def test_our_own_answer_is_the_same(tmp_path: Path) -> None:
    """The search's own settings, typed as a command, are not measured against themselves."""
    ours = checked(tmp_path, "-ngl 12 -c 4096 -np 1").ours.settings
    again = checked(tmp_path, f"-ngl {ours.n_gpu_layers} -c 4096 -np 1 -ub {ours.n_ubatch}")
    assert again.verdict is CheckVerdict.SAME
    assert again.differences == ()


def test_what_does_not_fit_is_not_launched(tmp_path: Path) -> None:
    """More than is free: said with both figures, no load, no verdict."""
    check = checked(tmp_path, "-ngl all -c 16384 -np 1")
    assert check.verdict is CheckVerdict.NOT_MEASURED
    assert check.theirs.error is not None
    assert check.theirs.error.code == "does_not_fit"
    assert check.n_model_loads == 0


def test_defaults_are_those_of_llama_server(tmp_path: Path) -> None:
    """Nothing given: four slots on one cache, and layers and context as its own fit takes them."""
    found = resolved(tmp_path, "-m x.gguf")
    assert codes(found) == ["slots_unified", "fitted_here"]
    assert found.settings.n_batch == 2048
    assert found.settings.n_ubatch == 512
    assert found.settings.n_threads == 8
    assert found.settings.flash_attn is FlashAttn.AUTO
    assert 0 < found.settings.n_gpu_layers < 33


@pytest.mark.parametrize(("flag", "layers"), [("all", 33), ("99", 33), ("-2", 33), ("7", 7)])
def test_layers(tmp_path: Path, flag: str, layers: int) -> None:
    """All, more than there are, and a number."""
    assert resolved(tmp_path, f"-ngl {flag} -c 4096").settings.n_gpu_layers == layers


def test_a_context_of_zero_is_the_training_s(tmp_path: Path) -> None:
    """``-c 0`` takes what the model was trained for; other sizes are rounded up to 256."""
    assert resolved(tmp_path, "-ngl 5 -c 0").settings.n_ctx == 32768
    assert resolved(tmp_path, "-ngl 5 -c 5000").settings.n_ctx == 5120


def test_load_modes(tmp_path: Path) -> None:
    """Mapping switched off is ours; locking pages is measured as the nearest, and said."""
    assert resolved(tmp_path, "-ngl 5 --no-mmap").settings.load_mode is LoadMode.NONE
    locked = resolved(tmp_path, "-ngl 5 -np 1 --mlock")
    assert locked.settings.load_mode is LoadMode.MMAP
    assert codes(locked) == ["load_mode_other"]


@pytest.mark.parametrize(
    ("flags", "n_cpu_moe", "rules"),
    [
        ("-cmoe", 48, ""),
        ("-ncmoe 7", 7, ""),
        ("-ot exps=CPU", 48, ""),
        (r'-ot "blk\.([0-9])\.ffn_(up|down|gate)_exps=CPU"', 10, ""),
        (r'-ot "ffn_(gate_up|down)_exps=CPU"', 48, ""),
        ("-ncmoe 7 -ot exps=CPU", 48, ""),
        (r'-ot "blk\.4[0-7]\.ffn_.*_exps\.=CPU"', 0, r"blk\.4[0-7]\.ffn_.*_exps\.=CPU"),
        ("-ot ffn_up_exps=CPU", 0, "ffn_up_exps=CPU"),
        ("-ot ffn_gate_inp=CPU", 0, "ffn_gate_inp=CPU"),
        (r"-ot 'blk\.0\.=CPU' -ncmoe 3", 3, r"blk\.0\.=CPU"),
        ("-ot exps=gpu0", 0, "exps=gpu0"),
        ("-ncffn 2", 0, r"blk\.(0|1)\.ffn_(up|down|gate)\.=CPU"),
        (
            "-ncmoe 2 -ot ffn_up_exps=gpu0",
            2,
            r"blk\.(0|1)\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU,ffn_up_exps=gpu0",
        ),
    ],
)
def test_overrides(tmp_path: Path, flags: str, n_cpu_moe: int, rules: str) -> None:
    """What keeps the experts of first layers in RAM is ``n_cpu_moe``; all else stays as written."""
    found = resolved(tmp_path, f"-ngl 99 -c 4096 -np 1 {flags}", "moe_49")
    assert (found.settings.n_cpu_moe, found.settings.override_tensor) == (n_cpu_moe, rules)
    assert codes(found) == []


@pytest.mark.parametrize("mode", ["none", "row", "tensor"])
def test_split_modes_are_taken_as_written(tmp_path: Path, mode: str) -> None:
    """``-sm`` is a setting like any other; llama.cpp's own fit does not know row and tensor."""
    found = resolved(tmp_path, f"-ngl 9 -c 4096 -np 1 -sm {mode}")
    assert (found.settings.split_mode, codes(found)) == (mode, [])
    fitted = resolved(tmp_path, f"-c 4096 -np 1 --split-mode {mode}")
    assert ("fitted_here" in codes(fitted)) is (mode == "none")


def test_experts_of_a_dense_model(tmp_path: Path) -> None:
    """Nothing to keep back: said, and no setting of ours changes."""
    found = resolved(tmp_path, "-ngl 9 -c 4096 -np 1 -cmoe")
    assert found.settings.n_cpu_moe == 0
    assert codes(found) == ["no_experts"]


@pytest.mark.parametrize(
    "flags",
    [
        "-ngl 10,20",
        "-ngl some",
        "-c -5",
        "-ub 0",
        "-ctk q3_k",
        "-sm rows",
        "-sm tensor -fa off",
        "-ctv q8_0 -fa off",
        "-dev CUDA7",
        "-lm odd",
        "-t 100000",
        "-ot exps",
        '-ot "(=CPU"',
    ],
)
def test_impossible_values_are_refused(tmp_path: Path, flags: str) -> None:
    """Nothing is launched for what llama.cpp itself would refuse."""
    with pytest.raises(UsageProblem) as caught:
        resolved(tmp_path, flags)
    assert caught.value.info.hint


@pytest.mark.parametrize("flags", ["-ngl 5 -sm none -mg 7", "-ngl 5 -c 256 -np 8"])
def test_an_impossible_command_ends_before_the_search(tmp_path: Path, flags: str) -> None:
    """Minutes of search would be lost with it: it is refused before the plan."""
    path, request = unpacked("partial_33", tmp_path), SweepRequest(budget=BudgetName.QUICK)
    command = read_command(f"llama-server {flags}")
    with pytest.raises(UsageProblem):
        next(replay_and_check(path, request, None, threading.Event(), command))


def test_a_short_context_shortens_the_workload(tmp_path: Path) -> None:
    """Slots that cannot hold the goal's request: both sides are timed with less, and it is said."""
    check = checked(tmp_path, "-ngl 12 -c 4096 -np 4")
    assert check.workload.depth + check.workload.n_prompt + check.workload.n_gen <= 1024
    assert "smaller_workload" in codes(check)


def test_what_has_no_place_is_said(tmp_path: Path) -> None:
    """Options that matter and cannot be measured here are named; their defaults are not."""
    found = resolved(tmp_path, "-ngl 5 -np 1 -nkvo -sm layer --lora a.gguf")
    assert codes(found) == ["not_represented"]
    assert found.settings.offload_kqv == "off"
    assert json.dumps([note.data for note in found.notes]).count("a.gguf") == 1
