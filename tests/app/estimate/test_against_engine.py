"""The formula against the real engine's dry run, on every tiny architecture."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import ErrorInfo
from app.domain.memory import DeviceMemory
from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings, Switch
from app.domain.sweep import SearchDevice
from app.domain.units import GIB, MIB
from app.estimate.compute import ERROR_FRAC
from app.estimate.formula import Formula
from app.gguf import read_model
from app.memory.memory import formula_device
from app.rig.planner import plan_with
from app.rig.process import Launch, WorkerProcess, drain, start_worker
from tests.fakes.models import POPULAR, TINY_ARCHS, make_model, sparse_model
from tests.fakes.published import PUBLISHED, published_model
from tests.fakes.rpc_device import rpc_device

pytestmark = pytest.mark.engine

CONTEXTS = (
    Settings(n_gpu_layers=0, n_ctx=600),
    Settings(n_gpu_layers=0, n_ctx=8192, n_ubatch=2048, n_seq_max=4, type_k="q8_0", type_v="q8_0"),
    Settings(n_gpu_layers=0, n_ctx=4096, n_seq_max=2, flash_attn=FlashAttn.OFF),
)


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    process = drain(start_worker(Launch()))
    yield process
    process.close()


def cache_bytes(device: DeviceMemory) -> int:
    """Cache and state together: the engine does not tell a hybrid's apart."""
    return (device.kv_cache_bytes or 0) + (device.recurrent_state_bytes or 0)


def check(worker: WorkerProcess, path: Path) -> None:
    formula = Formula(read_model(path), ())
    for settings in CONTEXTS:
        planned = plan_with(worker, str(path), settings)
        if isinstance(planned, ErrorInfo):
            continue
        (ours,), (engine,) = formula.estimate(settings), planned
        assert ours.weights_bytes == engine.weights_bytes
        assert cache_bytes(ours) == cache_bytes(engine)
        assert ours.output_bytes == engine.output_bytes
        assert ours.compute_bytes == pytest.approx(engine.compute_bytes, rel=ERROR_FRAC)


@pytest.mark.parametrize("kind", ["F16", "Q4_0"])
@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_tiny_models(worker: WorkerProcess, tmp_path: Path, arch: str, kind: str) -> None:
    """Weights, cache and state are identical, compute within its bar."""
    check(worker, make_model(tmp_path / "tiny.gguf", arch, tensor_type=kind))


@pytest.mark.parametrize("name", POPULAR)
def test_popular_shapes(worker: WorkerProcess, tmp_path: Path, name: str) -> None:
    """The same for real tensor tables up to 120B."""
    check(worker, sparse_model(tmp_path / "sparse.gguf", name))


@pytest.mark.parametrize("name", PUBLISHED)
def test_shapes_that_nothing_was_fitted_on(
    worker: WorkerProcess, tmp_path: Path, name: str
) -> None:
    """The same for fourteen further families."""
    check(worker, published_model(tmp_path / "sparse.gguf", name))


@pytest.fixture(scope="module")
def pair() -> Iterator[WorkerProcess]:
    with ExitStack() as stack:
        endpoints = tuple(stack.enter_context(rpc_device()) for _ in range(2))
        process = drain(start_worker(Launch(rpc=endpoints)))
        yield process
        process.close()


SHARED = ("llama", "qwen3moe", "gemma3", "deepseek2", "lfm2", "Llama-3.1-8B-Q4_K_M",
          "Qwen3-30B-A3B-Q4_K_M", "gpt-oss-20b-MXFP4", "gemma-3-27b-Q4_K_M")  # fmt: skip


def on_both(
    pair: WorkerProcess, path: Path, name: str
) -> tuple[Path, ModelSpec, tuple[str, ...], Formula]:
    """Return the model ``name`` made at ``path``, and the formula for it on both devices."""
    write = published_model if name in PUBLISHED else sparse_model
    model = make_model(path, name) if name in TINY_ARCHS else write(path, name)
    spec = read_model(model)
    assert pair.engine is not None
    devices = tuple(
        SearchDevice(id=d.name, kind=d.kind, backend=d.backend, total_bytes=GIB, free_bytes=GIB)
        for d in pair.engine.devices
    )
    formula = Formula(spec, tuple(formula_device(d) for d in devices))
    return model, spec, tuple(d.id for d in devices), formula


@pytest.mark.parametrize("name", SHARED)
def test_split_and_switches(pair: WorkerProcess, tmp_path: Path, name: str) -> None:
    """On two devices a split and a cache in RAM put every byte where the engine does."""
    model, spec, names, formula = on_both(pair, tmp_path / "model.gguf", name)
    layers = (1, spec.n_layer // 2, spec.n_layer + 1)
    for n, split, switch in product(layers, ("3,1", "1", "0,1"), Switch):
        asked = Settings(
            n_gpu_layers=n, devices=names, tensor_split=split,
            offload_kqv=switch, n_ctx=8192,
        )  # fmt: skip
        planned = plan_with(pair, str(model), asked)
        assert not isinstance(planned, ErrorInfo), planned
        for ours, engine in zip(formula.estimate(asked), planned, strict=True):
            assert ours.weights_bytes == engine.weights_bytes
            assert cache_bytes(ours) == cache_bytes(engine)
            check_compute(ours, engine)


def check_compute(ours: DeviceMemory, engine: DeviceMemory) -> None:
    """Too low by the error bar at most; a buffer below 1 MiB is all alignment."""
    assert engine.compute_bytes is not None
    assert engine.compute_bytes <= (ours.compute_bytes or 0) * (1 + ERROR_FRAC) + MIB


RULES = ("attn=CPU", r"blk\.(0|1)\.=CPU", "exps=RPC0,ffn=CPU", "token_embd=CPU", "rope=RPC1,.=CPU")


@pytest.mark.parametrize("name", [*SHARED, "gemma4", "qwen3next"])
def test_tensors_placed_by_name(pair: WorkerProcess, tmp_path: Path, name: str) -> None:
    """Rules put every byte where the engine does, on two devices and with ``n_cpu_moe``."""
    model, spec, names, formula = on_both(pair, tmp_path / "model.gguf", name)
    for n, rules, moe in product((2, spec.n_layer + 1), RULES, (0, 2) if spec.n_expert else (0,)):
        asked = Settings(
            n_gpu_layers=n, n_cpu_moe=moe, devices=names,
            tensor_split="3,1", override_tensor=rules, n_ctx=4096,
        )  # fmt: skip
        planned = plan_with(pair, str(model), asked)
        assert not isinstance(planned, ErrorInfo), planned
        for ours, engine in zip(formula.estimate(asked), planned, strict=True):
            assert ours.weights_bytes == engine.weights_bytes
            assert cache_bytes(ours) == cache_bytes(engine)
            check_compute(ours, engine)


HYBRIDS = ("lfm2", "jamba", "granitehybrid")


@pytest.mark.parametrize("name", HYBRIDS)
def test_attention_at_the_border_of_a_hybrid(
    pair: WorkerProcess, tmp_path: Path, name: str
) -> None:
    """A device that begins with a recurrent block also attends for the block before it."""
    model = make_model(tmp_path / "hybrid.gguf", name)
    spec = read_model(model)
    formula = Formula(spec, (formula_device(SearchDevice(
        id="RPC0", kind="remote", backend="RPC", total_bytes=GIB, free_bytes=GIB
    )),))  # fmt: skip
    for flash in (FlashAttn.ON, FlashAttn.OFF):
        asked = Settings(n_gpu_layers=3, devices=("RPC0",), n_ctx=65536, flash_attn=flash)
        planned = plan_with(pair, str(model), asked)
        assert not isinstance(planned, ErrorInfo), planned
        (ours, _), (engine, _) = formula.estimate(asked), planned
        assert ours.total_bytes == pytest.approx(engine.total_bytes, rel=0.1)


CASES = (
    ("GLM-4.5-Air", Settings(n_gpu_layers=2, n_ctx=16384)),  # the draft block and the output
    ("StarCoder2-7B", Settings(n_gpu_layers=31, n_ctx=12000, n_ubatch=1024)),  # no gate
    ("LFM2-1.2B", Settings(n_gpu_layers=17, n_ctx=65536, offload_kqv=Switch.OFF)),
    ("Falcon-H1-7B", Settings(n_gpu_layers=2, n_ctx=65536, offload_kqv=Switch.OFF)),
    (
        "Qwen3-Next-80B-A3B",
        Settings(n_gpu_layers=49, n_ctx=10240, offload_kqv=Switch.OFF, flash_attn=FlashAttn.OFF),
    ),
    ("DeepSeek-V2-Lite", Settings(n_gpu_layers=28, n_ctx=65536, offload_kqv=Switch.OFF)),
    ("DeepSeek-V3", Settings(n_gpu_layers=60, n_ctx=4096, n_ubatch=2048)),  # Q twice, in RAM
)


@pytest.mark.parametrize(("name", "asked"), CASES, ids=[name for name, _ in CASES])
def test_what_is_peculiar_to_a_family(
    pair: WorkerProcess, tmp_path: Path, name: str, asked: Settings
) -> None:
    """Draft blocks, no gate, and who attends to a cache in RAM: totals within 10 % everywhere."""
    path = published_model(tmp_path / "sparse.gguf", name)
    formula = Formula(read_model(path), (formula_device(SearchDevice(
        id="RPC0", kind="remote", backend="RPC", total_bytes=GIB, free_bytes=GIB
    )),))  # fmt: skip
    asked = msgspec.structs.replace(asked, devices=("RPC0",))
    planned = plan_with(pair, str(path), asked)
    assert not isinstance(planned, ErrorInfo), planned
    for ours, engine in zip(formula.estimate(asked), planned, strict=True):
        assert ours.weights_bytes == engine.weights_bytes
        assert ours.total_bytes == pytest.approx(engine.total_bytes, rel=0.1)


ON_TWO = (
    # MHA: a block's cache is most of what the first device computes with
    ("Phi-3-mini", Settings(n_gpu_layers=33, n_ctx=65536, offload_kqv=Switch.OFF)),
    # the second device has the output layer only, and the wanted rows are chosen before it
    ("DeepSeek-V2-Lite", Settings(n_gpu_layers=2, n_ctx=65536)),
)


@pytest.mark.parametrize(("name", "asked"), ON_TWO, ids=[name for name, _ in ON_TWO])
def test_what_is_peculiar_to_two_devices(
    pair: WorkerProcess, tmp_path: Path, name: str, asked: Settings
) -> None:
    """What a device copies of a cache in RAM, and rows at the output: totals within 5 %."""
    model, _, names, formula = on_both(pair, tmp_path / "sparse.gguf", name)
    asked = msgspec.structs.replace(asked, devices=names, tensor_split="1,1", n_ubatch=1024)
    planned = plan_with(pair, str(model), asked)
    assert not isinstance(planned, ErrorInfo), planned
    for ours, engine in zip(formula.estimate(asked), planned, strict=True):
        assert ours.weights_bytes == engine.weights_bytes
        assert ours.total_bytes == pytest.approx(engine.total_bytes, rel=0.05)
