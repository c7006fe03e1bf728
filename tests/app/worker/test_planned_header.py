"""Dry runs from a header without vocabulary: nothing but their time changes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.errors import ErrorInfo
from app.domain.memory import DeviceMemory
from app.domain.settings import Settings
from app.rig.planner import plan_with
from app.rig.process import Launch, WorkerProcess, drain, start_worker
from tests.fakes.models import make_model

pytestmark = pytest.mark.engine

REPOSITORY = Path(__file__).resolve().parents[3]
SETTINGS = Settings(n_gpu_layers=0, n_ctx=512)
# what lies in memory, looked at in a process of its own: no test imports the engine
LOOK = """
import json, os, sys
from app.worker.planned_header import planned_header
header = planned_header(sys.argv[1])
size = os.fstat(header.fd).st_size
found = os.pread(header.fd, 1 << 20, 0)
names = [b"tokenizer.ggml.tokens", b"tokenizer.ggml.scores", b"general.architecture", b"blk.1."]
print(json.dumps([size, [name in found for name in names], len(header.paths)]))
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    process = drain(start_worker(Launch()))
    yield process
    process.close()


def planned(worker: WorkerProcess, path: Path) -> tuple[DeviceMemory, ...]:
    answer = plan_with(worker, str(path), SETTINGS)
    assert not isinstance(answer, ErrorInfo), answer
    return answer


def look(path: Path) -> tuple[int, list[bool], int]:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(path)],
        cwd=REPOSITORY,
        check=True,
        stdout=subprocess.PIPE,
    )
    size, names, n_paths = json.loads(done.stdout)
    return size, names, n_paths


def test_shards_plan_like_one_file(worker: WorkerProcess, tmp_path: Path) -> None:
    """The later shards of a split model are found beside the first one, not beside its stand-in."""
    whole = make_model(tmp_path / "whole.gguf")
    split = make_model(tmp_path / "m-00001-of-00003.gguf", n_shards=3)
    assert planned(worker, split) == planned(worker, whole)


def test_a_changed_file_is_planned_anew(worker: WorkerProcess, tmp_path: Path) -> None:
    """A model written over between two questions is not answered from the old header."""
    path = make_model(tmp_path / "model.gguf", n_layer=2)
    before = planned(worker, path)
    make_model(path, n_layer=3)
    fresh = make_model(tmp_path / "fresh.gguf", n_layer=3)
    assert planned(worker, path) == planned(worker, fresh) != before


def test_a_truncated_file_is_refused(worker: WorkerProcess, tmp_path: Path) -> None:
    """The stand-in is as long as the file's weights are, so that missing ones are noticed."""
    path = make_model(tmp_path / "model.gguf")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 4096)
    answer = plan_with(worker, str(path), SETTINGS)
    assert isinstance(answer, ErrorInfo)
    assert "bounds" in answer.message


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files in memory here")
def test_the_words_are_left_out(tmp_path: Path) -> None:
    """The file in memory has metadata and tensor table but no list of words, and no weights."""
    path = make_model(tmp_path / "model.gguf")
    size, names, n_paths = look(path)
    assert names == [False, False, True, True]
    assert n_paths == 1
    assert size < path.stat().st_size
