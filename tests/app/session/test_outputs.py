"""Whether an answer leaves the model's words as they are: what is compared, and what is said."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.memory import MemoryEstimate, MemorySource, Verdict
from app.domain.model import ModelSpec
from app.domain.outcome import Outcome
from app.domain.settings import LoadMode, Settings, SplitMode
from app.domain.sweep import Reason, Recommended, SearchHost
from app.domain.trial import Rate
from app.gguf import read_model
from app.rig.process import Launch, drain
from app.rig.workers import Judge, WorkerRig
from app.session.outputs import (
    KL_BOUND_NATS,
    MAX_CHECK_TOK,
    MIN_CHECK_TOK,
    check_length,
    compare_output,
    output_reasons,
    reference_of,
)
from app.worker.protocol import Failed, OutputChecked
from tests.fakes.models import make_model
from tests.fakes.rpc_device import rpc_device

PLAIN = Settings(n_gpu_layers=0, n_ctx=512, n_threads=1, load_mode=LoadMode.NONE)
NO_RAM = "RAM must hold more than there is."


def answer(settings: Settings = PLAIN, prefill_tok_s: float | None = 100.0) -> Recommended:
    rate = None
    if prefill_tok_s is not None:
        rate = Rate(median=prefill_tok_s, low=prefill_tok_s, high=prefill_tok_s)
    return Recommended(
        settings=settings,
        prefill_tok_s=rate,
        decode_tok_s=rate,
        request_s=1.0,
        device_bytes={},
        trial=0,
    )


def apart(kl_nats: float) -> OutputChecked:
    return OutputChecked(kl_mean_nats=kl_nats, kl_max_nats=1.0, same_top=7, n_places=8, n_tok=256)


def codes(reasons: list[Reason]) -> list[str]:
    return [r.code for r in reasons]


@pytest.mark.parametrize(
    ("kl_nats", "code"), [(0.0, "output_same"), (0.1, "output_same"), (0.11, "output_differs")]
)
def test_the_bound_flags_a_setting(kl_nats: float, code: str) -> None:
    """Up to the bound a setting is called harmless, above it flagged; the bound is said."""
    (reason,) = output_reasons(PLAIN, apart(kl_nats))
    assert reason.code == code
    assert reason.data["bound_nats"] == str(KL_BOUND_NATS)


def test_a_quantised_cache_gets_its_note() -> None:
    """Quality of K and V is told with the figure that was measured."""
    found = output_reasons(Settings(n_gpu_layers=0, type_k="q8_0"), apart(0.0012))
    assert codes(found) == ["output_same", "kv_quality"]
    assert found[1].data["kl_nats"] == "0.0012"


def test_what_could_not_be_compared_is_said() -> None:
    """A failed comparison is no comparison passed, and neither is one without a model."""
    failed = Failed(outcome=Outcome.CRASHED, error=ErrorInfo(code="x", message="why"))
    assert codes(output_reasons(PLAIN, failed)) == ["output_unchecked"]
    assert codes(output_reasons(PLAIN, None)) == ["output_unchecked"]


def test_what_devices_compute_together_is_compared_with_the_cpu() -> None:
    """Divided by tensor nothing runs with a plain cache: another copy does, in RAM, in f16."""
    by_tensor = Settings(
        n_gpu_layers=9, devices=("A", "B"), split_mode=SplitMode.TENSOR, tensor_split="2,1",
        type_k="q8_0", type_v="q8_0", n_ctx=1 << 17, n_seq_max=4,
    )  # fmt: skip
    reference = reference_of(by_tensor)
    assert reference is not None
    assert (reference.devices, reference.n_gpu_layers, reference.tensor_split) == ((), 0, "")
    assert (reference.type_k, reference.type_v, reference.flash_attn) == ("f16", "f16", "off")
    assert codes(output_reasons(by_tensor, apart(0.2))) == [
        "output_differs", "output_beside_cpu", "kv_quality",
    ]  # fmt: skip
    assert reference_of(msgspec.structs.replace(by_tensor, devices=())) is None  # not divided
    assert reference_of(msgspec.structs.replace(by_tensor, split_mode=SplitMode.ROW)) is None


def test_the_check_stays_short() -> None:
    """A slow model reads fewer tokens."""
    assert check_length(answer(prefill_tok_s=1.0)) == MIN_CHECK_TOK
    assert check_length(answer(prefill_tok_s=40.0)) == 100
    assert check_length(answer(prefill_tok_s=1e4)) == MAX_CHECK_TOK
    assert check_length(answer(prefill_tok_s=None)) == MIN_CHECK_TOK


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> ModelSpec:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    return read_model(make_model(path, "llama", n_embd=256))


@pytest.fixture(scope="module")
def two_devices() -> Iterator[tuple[str, str]]:
    with rpc_device() as first, rpc_device() as second:
        yield first, second


@contextmanager
def rig_on(spec: ModelSpec, *endpoints: str, judge: Judge | None = None) -> Iterator[WorkerRig]:
    host = SearchHost(cores_physical=1, cores_logical=1, ram_bytes=1 << 34)
    with closing(WorkerRig(spec, host, launch=Launch(rpc=endpoints), judge=judge)) as rig:
        yield rig


@pytest.mark.engine
def test_a_load_divided_by_tensor_is_compared(
    tiny: ModelSpec, two_devices: tuple[str, str]
) -> None:
    """Two devices that compute each layer together say what the CPU says; the figure is told."""
    with rig_on(tiny, *two_devices) as rig:
        both = tuple(d.id for d in rig.space().devices)
        by_tensor = msgspec.structs.replace(
            PLAIN, n_gpu_layers=99, devices=both, split_mode=SplitMode.TENSOR
        )
        found = drain(compare_output(answer(by_tensor), rig))  # nothing is loaded yet
        assert codes(found) == ["output_same", "output_beside_cpu"]
        assert found[0].data["n_tok"] == MIN_CHECK_TOK
        assert 0 <= float(str(found[0].data["kl_nats"])) <= KL_BOUND_NATS
        assert rig.loaded == by_tensor


@pytest.mark.engine
def test_a_reference_that_does_not_fit_is_said(
    tiny: ModelSpec, two_devices: tuple[str, str]
) -> None:
    """Without the RAM for a second copy nothing is loaded, and the reason is told."""

    def judge(settings: Settings, _: object) -> MemoryEstimate:
        assert not settings.devices
        source, verdict = MemorySource.DRY_RUN, Verdict.DOES_NOT_FIT
        return MemoryEstimate(devices=(), source=source, verdict=verdict, note=NO_RAM)

    by_tensor = Settings(n_gpu_layers=9, devices=("RPC0", "RPC1"), split_mode=SplitMode.TENSOR)
    with rig_on(tiny, *two_devices, judge=judge) as rig:
        (reason,) = drain(compare_output(answer(by_tensor), rig))
        assert (reason.code, reason.data) == ("output_unchecked", {"why": NO_RAM})
        assert rig.loaded is None


@pytest.mark.engine
def test_a_comparison_that_cannot_be_planned_leaves_the_answer(
    tiny: ModelSpec, two_devices: tuple[str, str]
) -> None:
    """No worker to plan with is told in place of the comparison; the search's result stays."""

    def judge(settings: Settings, _: object) -> MemoryEstimate:
        raise EnvironmentProblem("engine_not_started", "The engine did not start.")

    by_tensor = Settings(n_gpu_layers=9, devices=("RPC0", "RPC1"), split_mode=SplitMode.TENSOR)
    with rig_on(tiny, *two_devices, judge=judge) as rig:
        (reason,) = drain(compare_output(answer(by_tensor), rig))
        assert (reason.code, reason.data) == (
            "output_unchecked", {"why": "The engine did not start."},
        )  # fmt: skip


@pytest.mark.engine
def test_an_answer_that_is_not_loaded_is_loaded_again(
    tiny: ModelSpec, two_devices: tuple[str, str]
) -> None:
    """Weights on other devices say nothing about the answer's; fewer layers there do."""
    with rig_on(tiny, *two_devices) as rig:
        both = tuple(d.id for d in rig.space().devices)
        on_both = msgspec.structs.replace(PLAIN, n_gpu_layers=99, devices=both)
        for settings, loaded in (
            (PLAIN, PLAIN),  # nothing was loaded
            (msgspec.structs.replace(PLAIN, load_mode=LoadMode.MMAP), PLAIN),
            (on_both, on_both),
            (msgspec.structs.replace(on_both, n_gpu_layers=2), on_both),
        ):
            assert codes(drain(compare_output(answer(settings), rig))) == ["output_same"]
            assert rig.loaded == loaded
        gone = msgspec.structs.replace(PLAIN, devices=("CUDA7",), n_gpu_layers=1)
        assert codes(drain(compare_output(answer(gone), rig))) == ["output_unchecked"]
