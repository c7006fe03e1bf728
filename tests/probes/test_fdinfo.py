"""Memory of programs on AMD and Intel GPUs from the kernel's per-client figures."""

import os
from pathlib import Path

import pytest

from probes.fdinfo import memory_by_program
from probes.linux_drm import DrmProbe
from probes.tree import FileTree
from tests.fakes.probe import FakeTree
from tests.probes.test_linux_drm import AMD, amd

PCI = "0000:08:00.0"
MIB = 1 << 20


def client(number: int, *lines: str, pdev: str = PCI) -> str:
    return "\n".join(
        [
            "pos:\t0",
            "drm-driver:\tamdgpu",
            f"drm-pdev:\t{pdev}",
            f"drm-client-id:\t{number}",
            *lines,
        ]
    )


def test_descriptors_of_one_client_count_once() -> None:
    """A program may hold the same client through several descriptors; clients add up."""
    one = client(1, "drm-memory-vram:\t2048 KiB", "drm-memory-gtt:\t1 MiB")
    two = client(2, "drm-memory-vram:\t1 MiB")
    assert memory_by_program([(7, one), (7, one), (7, two)], PCI) == {7: (3 * MIB, MIB)}


@pytest.mark.parametrize(
    ("lines", "held"),
    [
        (["drm-total-vram0:\t9 MiB", "drm-resident-vram0:\t3 MiB"], (3 * MIB, 0)),
        (["drm-total-local0:\t5 MiB", "drm-total-system0:\t2 MiB"], (5 * MIB, 2 * MIB)),
        (["drm-memory-vram:\t512"], (512, 0)),
    ],
)
def test_regions_of_all_drivers(lines: list[str], held: tuple[int, int]) -> None:
    """amdgpu, i915 and xe name their regions differently; what is resident counts."""
    assert memory_by_program([(7, client(1, *lines))], PCI) == {7: held}


@pytest.mark.parametrize(
    "text", ["", "drm-pdev:\t", client(1), client(1, "drm-memory-vram:\tlots"), "\0\1:::\n::"]
)
def test_odd_texts_hold_nothing(text: str) -> None:
    """Empty, foreign and damaged figures name no program."""
    assert memory_by_program([(7, text)], PCI) == {}


def test_other_cards_programs_do_not_count() -> None:
    """Only the clients of this card are taken."""
    assert (
        memory_by_program([(7, client(1, "drm-memory-vram:\t1 MiB", pdev="0000:01:00.0"))], PCI)
        == {}
    )


def test_probe_names_the_programs() -> None:
    """The sample of an AMD card carries who holds its memory."""
    tree = amd()
    assert isinstance(tree, FakeTree)
    tree.files[f"{AMD}/mem_info_vram_total"] = str(64 * MIB)
    tree.clients = ((42, client(1, "drm-memory-vram:\t8 MiB")),)
    probe = DrmProbe(tree, sample_nvidia=True, process_name=lambda pid: f"program{pid}")
    programs = probe.sample()[0].processes
    assert programs is not None
    assert [(p.pid, p.name, p.vram_bytes) for p in programs] == [(42, "program42", 8 * MIB)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="links of this kind exist on POSIX only")
def test_only_descriptors_of_gpus_are_opened(tmp_path: Path) -> None:
    """Of all open files only those on a GPU's node are looked at."""
    process = tmp_path / "proc" / "42"
    (process / "fd").mkdir(parents=True)
    (process / "fdinfo").mkdir()
    (process / "fd" / "3").symlink_to("/dev/dri/renderD128")
    (process / "fd" / "4").symlink_to("/home/someone/diary.txt")
    (process / "fdinfo" / "3").write_text("drm-pdev: x")
    (process / "fdinfo" / "4").write_text("secret")
    (tmp_path / "proc" / "self").mkdir()
    assert FileTree(tmp_path).drm_clients() == ((42, "drm-pdev: x"),)
