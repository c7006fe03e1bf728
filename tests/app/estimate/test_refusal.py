"""Contexts the engine does not create have no estimate, but a reason."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import ErrorInfo
from app.domain.settings import FlashAttn, Settings
from app.estimate.refusal import refusal
from app.gguf import read_model
from app.rig.planner import plan_with
from app.rig.process import Launch, WorkerProcess, drain, start_worker
from tests.fakes.models import TINY_ARCHS, make_model
from tests.fakes.shapes import a_spec

DENSE = a_spec(arch="llama", n_layer=2, n_embd=64, n_vocab=32, n_head=4, n_head_kv=2, k_dim=16)
BASE = Settings(n_gpu_layers=0)
TYPES = ("f16", "q8_0", "q4_0")


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    process = drain(start_worker(Launch()))
    yield process
    process.close()


def with_types(type_k: str, type_v: str, flash: FlashAttn) -> Settings:
    return msgspec.structs.replace(BASE, type_k=type_k, type_v=type_v, flash_attn=flash)


@pytest.mark.parametrize(
    ("arch", "settings", "words"),
    [
        ("llama", with_types("q8_0", "f16", FlashAttn.ON), "heads of 16"),
        ("llama", with_types("f16", "q4_0", FlashAttn.AUTO), "heads of 16"),
        ("llama", with_types("f16", "q8_0", FlashAttn.OFF), "flash attention"),
        ("llama", msgspec.structs.replace(BASE, n_seq_max=257), "256"),
        ("grok", with_types("f16", "q8_0", FlashAttn.ON), "flash attention"),
        ("deepseek4", with_types("f16", "bf16", FlashAttn.ON), "one cache"),
    ],
)
def test_the_reason_names_the_settings(arch: str, settings: Settings, words: str) -> None:
    """Each refusal says which settings exclude each other."""
    why = refusal(msgspec.structs.replace(DENSE, arch=arch), settings)
    assert why is not None
    assert words in why


def test_plain_types_are_never_refused() -> None:
    """16-bit caches go with every head size and attention."""
    for flash in FlashAttn:
        assert refusal(DENSE, with_types("f16", "bf16", flash)) is None
    assert refusal(DENSE, with_types("q8_0", "f16", FlashAttn.OFF)) is None


@pytest.mark.engine
@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_the_engine_agrees(worker: WorkerProcess, tmp_path: Path, arch: str) -> None:
    """For every pair of cache types and every attention: refused here if refused there."""
    path = make_model(tmp_path / "tiny.gguf", arch)
    spec = read_model(path)
    for types in product(TYPES, TYPES, FlashAttn):
        settings = with_types(*types)
        planned = plan_with(worker, str(path), settings)
        assert (refusal(spec, settings) is not None) == isinstance(planned, ErrorInfo), types
