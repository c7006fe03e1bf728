"""One model on one machine: estimates, inverse questions, dry runs and their cache."""

import msgspec
import pytest

from app.domain.errors import ErrorInfo
from app.domain.machine import GpuKind, HostInfo
from app.domain.memory import DeviceMemory, MemorySource, Verdict
from app.domain.settings import LoadMode, Settings, SplitMode
from app.domain.sweep import SearchDevice
from app.domain.units import GIB, MIB
from app.estimate.formula import Formula
from app.estimate.profile import FormulaDevice
from app.memory import Memory
from app.worker.protocol import NO_BREAKDOWN
from tests.fakes.shapes import a_spec, dense_tensors, moe_tensors

HOST = HostInfo(os="linux", ram_bytes=64 * GIB, ram_available_bytes=60 * GIB)
QWEN25_7B = a_spec(
    arch="qwen2", n_layer=28, n_embd=3584, n_vocab=152064, n_head=28, n_head_kv=4, k_dim=128,
    tensors=dense_tensors(
        n_layer=28, n_embd=3584, n_vocab=152064, n_ff=18944, n_q=3584, n_kv=512, kind="q4_K"
    ),
)  # fmt: skip
QWEN3_30B = a_spec(
    arch="qwen3moe", n_layer=48, n_embd=2048, n_vocab=151936, n_head=32, n_head_kv=4, k_dim=128,
    n_expert=128, n_expert_used=8, n_ctx_train=40960,
    tensors=moe_tensors(
        n_layer=48, n_embd=2048, n_vocab=151936, n_ff_exp=768, n_expert=128, n_q=4096, n_kv=512,
        kind="q4_K",
    ),
)  # fmt: skip


def card(free: int) -> SearchDevice:
    return SearchDevice(
        id="CUDA0", kind=GpuKind.DISCRETE, backend="CUDA", total_bytes=24 * GIB, free_bytes=free
    )


class Planner:
    """A planner that answers with the formula plus what only an engine knows."""

    def __init__(self, extra_bytes: int = 0, refuse_above: int | None = None) -> None:
        self.asked: list[Settings] = []
        self._extra_bytes = extra_bytes
        self._refuse_above = refuse_above
        self._formula = Formula(QWEN25_7B, (FormulaDevice(name="CUDA0", split=1.0),))

    def __call__(self, settings: Settings) -> tuple[DeviceMemory, ...] | ErrorInfo:
        self.asked.append(settings)
        if self._refuse_above is not None and settings.n_ctx > self._refuse_above:
            return ErrorInfo(code="context_refused", message="The tensor is too large.")
        *gpus, host = self._formula.estimate(settings)
        if not gpus:
            return (host,)
        (gpu,) = gpus
        total = gpu.total_bytes + self._extra_bytes
        return msgspec.structs.replace(gpu, total_bytes=total), host


def test_most_layers_are_those_a_real_card_took() -> None:
    """7B with 4 GiB free: 20 layers ran and 21 did not; the formula stays at or just below."""
    found = Memory(QWEN25_7B, (card(4 * GIB),), HOST).max_n_gpu_layers(Settings(n_gpu_layers=0))
    assert found in {19, 20}


def test_fewest_expert_layers_are_those_a_real_card_needed() -> None:
    """30B MoE with 8 GiB free: 32 layers' experts in RAM ran, 30 failed."""
    found = Memory(QWEN3_30B, (card(8 * GIB),), HOST).min_n_cpu_moe(Settings(n_gpu_layers=99))
    assert found in {31, 32}


def test_one_more_layer_does_not_fit() -> None:
    """The answer is an edge: its own estimate fits, the next one's does not."""
    memory = Memory(QWEN25_7B, (card(4 * GIB),), HOST)
    best = memory.max_n_gpu_layers(Settings(n_gpu_layers=0))
    assert best is not None
    assert memory.estimate(Settings(n_gpu_layers=best)).verdict is Verdict.FITS
    assert memory.estimate(Settings(n_gpu_layers=best + 1)).verdict is not Verdict.FITS


def test_longest_context_is_an_edge_and_bounded_by_training() -> None:
    """In steps of 256; never beyond what the model was trained for."""
    tight = Memory(QWEN25_7B, (card(6 * GIB),), HOST)
    settings = Settings(n_gpu_layers=99)
    n_ctx = tight.max_n_ctx(settings)
    assert n_ctx is not None
    assert n_ctx % 256 == 0
    longer = msgspec.structs.replace(settings, n_ctx=n_ctx + 256)
    assert tight.estimate(longer).verdict is not Verdict.FITS
    roomy = Memory(QWEN3_30B, (card(24 * GIB),), HOST)
    assert roomy.max_n_ctx(settings) == 40960


def test_nothing_fits_is_none() -> None:
    """When not even the smallest value fits there is no answer; no layers always fit."""
    memory = Memory(QWEN25_7B, (card(100 * MIB),), HOST)
    settings = Settings(n_gpu_layers=99)
    assert memory.max_n_gpu_layers(settings) == 0
    assert memory.max_n_gpu_layers(Settings(n_gpu_layers=0, devices=("CUDA0",))) is None
    assert memory.max_n_ctx(settings) is None
    assert memory.cheapest_kv(settings) is None


def test_cheapest_kv_is_the_least_coarse_that_fits() -> None:
    """At 64k context f16 is too much for 7 GiB, q8_0 is not."""
    memory = Memory(QWEN25_7B, (card(7 * GIB),), HOST)
    assert memory.cheapest_kv(Settings(n_gpu_layers=99, n_ctx=4096)) == "f16"
    assert memory.cheapest_kv(Settings(n_gpu_layers=99, n_ctx=65536)) == "q8_0"


def test_next_layer_costs_its_weights_and_cache() -> None:
    """The price of one more block, and none when all are there."""
    memory = Memory(QWEN25_7B, (card(24 * GIB),), HOST)
    block = sum(t.n_bytes for t in QWEN25_7B.tensors if t.name.startswith("blk.20."))
    cache = 4096 * 2 * 4 * 128 * 2
    found = memory.next_layer_bytes(Settings(n_gpu_layers=5))
    assert found == pytest.approx(block + cache, rel=0.01)
    assert memory.next_layer_bytes(Settings(n_gpu_layers=29)) is None


def test_closing_a_program_makes_room() -> None:
    """``freed`` answers what would fit with more free memory; the original is unchanged."""
    memory = Memory(QWEN25_7B, (card(4 * GIB),), HOST)
    settings = Settings(n_gpu_layers=99)
    assert memory.freed({"CUDA0": 4 * GIB}).estimate(settings).verdict is Verdict.FITS
    assert memory.estimate(settings).verdict is Verdict.DOES_NOT_FIT


def test_without_devices_everything_is_in_ram() -> None:
    """CPU only: no layer can go anywhere, RAM has the verdict."""
    memory = Memory(QWEN25_7B, (), HOST)
    estimate = memory.estimate(Settings(n_gpu_layers=99))
    assert memory.max_n_gpu_layers(Settings(n_gpu_layers=0)) == 0
    assert [d.device for d in estimate.devices] == ["host"]
    assert estimate.verdict is Verdict.FITS


def test_formula_states_source_and_error() -> None:
    """A formula says that it is one and by how much it may be off."""
    estimate = Memory(QWEN25_7B, (card(8 * GIB),), HOST).estimate(Settings(n_gpu_layers=29))
    assert estimate.source is MemorySource.FORMULA
    assert 0 < (estimate.max_error_pct or 0) < 5
    assert estimate.elapsed_ms is not None


def test_unknown_architecture_asks_for_the_dry_run() -> None:
    """No formula: unknown, with the way out; the dry run then decides."""
    spec = msgspec.structs.replace(QWEN25_7B, formula_known=False, arch="novel")
    memory = Memory(spec, (card(8 * GIB),), HOST, Planner())
    settings = Settings(n_gpu_layers=29)
    estimate = memory.estimate(settings)
    assert estimate.verdict is Verdict.UNKNOWN
    assert "novel" in (estimate.note or "")
    assert memory.estimate(settings, exact=True).verdict is Verdict.FITS


def test_a_software_device_asks_for_the_dry_run() -> None:
    """A rasteriser's limits move tensors to RAM in ways only the engine knows."""
    device = msgspec.structs.replace(card(8 * GIB), kind=GpuKind.SOFTWARE)
    estimate = Memory(QWEN25_7B, (device,), HOST).estimate(Settings(n_gpu_layers=29))
    assert estimate.verdict is Verdict.UNKNOWN
    assert "software device CUDA0" in (estimate.note or "")


def test_a_dry_run_is_asked_once() -> None:
    """Settings that cannot change the need share one dry run, also between instances."""
    planner, cache = Planner(), {}  # type: ignore[var-annotated]
    memory = Memory(QWEN25_7B, (card(8 * GIB),), HOST, planner, cache=cache)
    settings = Settings(n_gpu_layers=29)
    first = memory.estimate(settings, exact=True)
    again = msgspec.structs.replace(settings, n_threads=7, load_mode=LoadMode.NONE)
    assert memory.estimate(again, exact=True).device_bytes() == first.device_bytes()
    Memory(QWEN25_7B, (card(GIB),), HOST, planner, cache=cache).estimate(settings, exact=True)
    assert len(planner.asked) == 1
    assert first.source is MemorySource.DRY_RUN
    assert first.max_error_pct is None


def test_another_engine_build_is_asked_again() -> None:
    """A dry run counts for its build only."""
    planner, cache = Planner(), {}  # type: ignore[var-annotated]
    for build in ("a", "b"):
        memory = Memory(QWEN25_7B, (), HOST, planner, cache=cache, engine_build=build)
        memory.estimate(Settings(n_gpu_layers=29), exact=True)
    assert len(planner.asked) == 2


def test_exact_search_begins_at_the_formulas_answer() -> None:
    """Few dry runs: the formula is nearly right, and the engine's answer wins."""
    planner = Planner(extra_bytes=200 * MIB)
    memory = Memory(QWEN25_7B, (card(4 * GIB),), HOST, planner)
    settings = Settings(n_gpu_layers=0)
    fast = memory.max_n_gpu_layers(settings)
    exact = memory.max_n_gpu_layers(settings, exact=True)
    assert fast is not None
    assert exact is not None
    assert exact < fast
    assert len(planner.asked) <= 4


def test_a_refusal_does_not_fit_and_says_why() -> None:
    """What the engine would not create cannot run; searches stop before it."""
    memory = Memory(QWEN25_7B, (card(24 * GIB),), HOST, Planner(refuse_above=8192))
    refused = memory.estimate(Settings(n_gpu_layers=29, n_ctx=16384), exact=True)
    assert refused.verdict is Verdict.DOES_NOT_FIT
    assert refused.note == "The tensor is too large."
    assert memory.max_n_ctx(Settings(n_gpu_layers=29), exact=True) == 8192


def test_an_engine_that_cannot_say_leaves_it_to_the_formula() -> None:
    """A build without the breakdown says nothing about the settings: no "does not fit"."""
    unable = ErrorInfo(code=NO_BREAKDOWN, message="This build does not offer the numbers.")
    memory = Memory(QWEN25_7B, (card(24 * GIB),), HOST, lambda _: unable)
    answer = memory.estimate(Settings(n_gpu_layers=1), exact=True)
    assert answer.source is MemorySource.FORMULA
    assert answer.verdict is Verdict.FITS


def test_an_engine_that_tells_compute_only_completes_the_formula() -> None:
    """Weights and cache stay the formula's, exact; the buffers are the engine's, without a bar."""
    told = (
        DeviceMemory(device="CUDA0", compute_bytes=123 * MIB, total_bytes=123 * MIB),
        DeviceMemory(device="host", compute_bytes=7 * MIB, total_bytes=7 * MIB),
    )
    memory = Memory(QWEN25_7B, (card(24 * GIB),), HOST, lambda _: told)
    plain = memory.estimate(Settings(n_gpu_layers=29)).devices[0]
    answer = memory.estimate(Settings(n_gpu_layers=29), exact=True)
    assert answer.source is MemorySource.FORMULA
    assert answer.max_error_pct == 0
    found = answer.devices[0]
    assert (found.weights_bytes, found.compute_bytes) == (plain.weights_bytes, 123 * MIB)
    assert found.total_bytes == plain.total_bytes - (plain.compute_bytes or 0) + 123 * MIB


def test_predicted_speed_follows_bandwidth() -> None:
    """All on one device: bytes per token over bandwidth."""
    memory = Memory(QWEN25_7B, (card(8 * GIB),), HOST)
    speed = memory.predicted_tok_s(Settings(n_gpu_layers=29), {"CUDA0": 1000.0, "host": 50.0})
    read = QWEN25_7B.weights_bytes - QWEN25_7B.tensors[0].n_bytes
    assert speed == pytest.approx(1e12 / read, rel=1e-6)


def test_predicted_speed_counts_the_devices_that_are_used() -> None:
    """A device that is not named reads nothing: its speed need not be known."""
    cards = (card(8 * GIB), msgspec.structs.replace(card(8 * GIB), id="CUDA1"))
    memory = Memory(QWEN25_7B, cards, HOST)
    alone = Settings(n_gpu_layers=29, devices=("CUDA1",))
    assert memory.token_bytes(alone).keys() == {"CUDA1", "host"}
    assert memory.predicted_tok_s(alone, {"CUDA1": 1000.0, "host": 50.0}) is not None


@pytest.mark.parametrize("mode", [SplitMode.ROW, SplitMode.TENSOR])
def test_what_devices_share_layer_by_layer_is_never_certain(mode: SplitMode) -> None:
    """The engine counts them as one: open where it may fit, no where it cannot."""
    second = msgspec.structs.replace(card(20 * GIB), id="CUDA1")
    uncounted = ErrorInfo(code=NO_BREAKDOWN, message="Not counted.")
    memory = Memory(QWEN25_7B, (card(20 * GIB), second), HOST, lambda _: uncounted)
    asked = Settings(n_gpu_layers=99, n_ctx=4096, split_mode=mode)
    found = memory.estimate(asked, exact=True)
    assert (found.verdict, found.source, found.note) == (
        Verdict.UNKNOWN, MemorySource.FORMULA, None
    )  # fmt: skip
    assert [d.device for d in found.devices] == ["CUDA0", "CUDA1", "host"]
    assert memory.max_n_gpu_layers(asked) is None
    more = msgspec.structs.replace(asked, n_ctx=1 << 20)
    assert memory.estimate(more, exact=True).verdict is Verdict.DOES_NOT_FIT
    alone = Memory(QWEN25_7B, (card(20 * GIB),), HOST)
    assert alone.estimate(asked).verdict is Verdict.FITS
