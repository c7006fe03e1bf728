"""Devices of a command line: which of them it uses, and how they share the model."""

import msgspec
import pytest

from app.domain.errors import UsageProblem
from app.domain.settings import SplitMode
from app.domain.sweep import Reason, SearchDevice, SearchSpace
from app.export import read_command
from app.rig.simulated import SimulatedRig
from app.session.command_devices import Sharing, sharing
from tests.fakes.rigs import machine

GIB = 1 << 30


def device(name: str, kind: str = "discrete") -> SearchDevice:
    return SearchDevice(id=name, kind=kind, backend="CUDA", total_bytes=8 * GIB, free_bytes=7 * GIB)


def space(*devices: SearchDevice) -> SearchSpace:
    return msgspec.structs.replace(SimulatedRig(machine()).space(), devices=devices)


THREE = space(device("CUDA0"), device("CUDA1"), device("Vulkan2", "integrated"))


def shared(flags: str, found: SearchSpace = THREE) -> tuple[Sharing, list[Reason]]:
    notes: list[Reason] = []
    options = read_command(f"llama-server {flags}").options
    return sharing(options, found, notes), notes


@pytest.mark.parametrize(
    ("flags", "devices"),
    [
        ("-ngl 9", ("CUDA0", "CUDA1")),
        ("-dev CUDA1", ("CUDA1",)),
        ("-dev cuda1,CUDA0", ("CUDA1", "CUDA0")),
        ("-dev none", ()),
        ("-sm none", ("CUDA0",)),
        ("-sm none -mg 1", ("CUDA1",)),
        ("-sm none -mg 1 -dev CUDA1,CUDA0", ("CUDA0",)),
        ("-sm none -dev Vulkan2", ("Vulkan2",)),
        ("-sm none -mg -1", ()),
        ("-sm none -mg 3 -dev none", ()),
    ],
)
def test_which_devices(flags: str, devices: tuple[str, ...]) -> None:
    """Those given, or all real ones; with split mode none the main one of them alone."""
    found, notes = shared(flags)
    assert (found.devices, notes) == (devices, [])


@pytest.mark.parametrize("mode", ["layer", "row", "tensor"])
def test_a_main_gpu_without_effect_is_said(mode: str) -> None:
    """Only split mode none asks for one; the default is no word worth."""
    found, notes = shared(f"-sm {mode} -mg 1")
    assert found.devices == ("CUDA0", "CUDA1")
    assert [note.code for note in notes] == ["main_gpu_unused"]
    assert shared(f"-sm {mode} -mg 0")[1] == []


@pytest.mark.parametrize(
    ("flags", "split"),
    [
        ("-ts 3,1", "3,1"), ("-ts 3/1", "3,1"), ("-ts 0.6,0.4", "1000,667"), ("-ts 0,0", ""),
        ("-ts 1,0", "1,0"), ("-ts 24576000,8192000", "1000,333"), ("-ts 2e-310,1e-310", "1000,500"),
        ("-ts 3,1 -sm none", ""),
        ("-ts 3,1 -dev CUDA1", ""),
    ],
)  # fmt: skip
def test_shares(flags: str, split: str) -> None:
    """Only their proportions count; all zero is by free memory, one device shares nothing."""
    assert shared(flags)[0].tensor_split == split


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        ("-sm none -mg 7", "0 = CUDA0, 1 = CUDA1"),
        ("-sm none -mg 1 -dev CUDA1", "0 = CUDA1"),
        ("-sm none -mg first", "whole number"),
        ("-dev CUDA1,CUDA9", "CUDA0, CUDA1, Vulkan2"),
        ("-ts big,small", "3,1"),
        ("-ts 1,-2", "3,1"),
        ("-ts nan,1", "3,1"),
        ("-ts " + ",".join("1" * 17), "16"),
    ],
)
def test_what_llama_cpp_would_refuse_is_refused(flags: str, hint: str) -> None:
    """Nothing is measured in its place, and what there is is named."""
    with pytest.raises(UsageProblem) as caught:
        shared(flags)
    assert hint in caught.value.info.hint


def test_a_machine_without_devices() -> None:
    """Whatever the command says of them, the CPU is all there is."""
    assert shared("-sm none -mg 1 -ts 3,1", space()) == (Sharing((), SplitMode.NONE, ""), [])
