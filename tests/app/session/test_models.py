"""Predicted decode speed: from what was measured on this machine, tagged, or not at all."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from app.domain.machine import EngineInfo, HostInfo, Machine
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.domain.sweep import Goal, Reason, SweepRequest, SweepResult, SweepStatus
from app.domain.trial import Rate
from app.gguf import read_model
from app.memory import Memory
from app.session.models import Predictor
from app.session.opening import memory_for
from app.store import Profile, Store, sweep_fingerprint
from app.store.records import machine_name
from tests.fakes.models import make_model
from tests.fakes.records import a_plan

ENGINE = EngineInfo(
    version="0.3", llama_version="b1", backends=("CPU",), devices=(), supports_offload=False
)
MACHINE = Machine(host=HostInfo(os="linux", cpu_name="A CPU", ram_bytes=1 << 34), engine=ENGINE)
ON_CPU = Settings(n_gpu_layers=0, n_ctx=4096)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    with closing(Store.open()) as opened:
        yield opened


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelSpec, ModelSpec]:
    """A small model and one of about four times its layers."""
    folder = tmp_path_factory.mktemp("models")
    small = make_model(folder / "small.gguf", "llama", n_layer=2)
    large = make_model(folder / "large.gguf", "llama", n_layer=8)
    return read_model(str(small)), read_model(str(large))


def memory(spec: ModelSpec) -> Memory:
    return memory_for(spec, MACHINE, ())


def profile(spec: ModelSpec, decode_tok_s: float | None, machine: Machine = MACHINE) -> Profile:
    rate = decode_tok_s and Rate(median=decode_tok_s, low=decode_tok_s, high=decode_tok_s)
    return Profile(
        name="x",
        settings=ON_CPU,
        model_fingerprint=spec.fingerprint,
        model_name=spec.name,
        model_path=spec.path,
        goal=Goal.CHAT,
        decode_tok_s=rate or None,
        machine=machine_name(machine),
    )


def test_nothing_measured_says_so(store: Store, specs: tuple[ModelSpec, ModelSpec]) -> None:
    """No figure is made up: there is none, with the reason."""
    found = Predictor(MACHINE, store).predict(specs[0], memory(specs[0]), ON_CPU)
    assert (found.tok_s, found.source, found.reason) == (None, None, "nothing_measured")


def test_a_tuned_model_has_its_own_speed(store: Store, specs: tuple[ModelSpec, ModelSpec]) -> None:
    """Measured here: the newest answer, tagged as measured."""
    store.save_profile(profile(specs[0], 30.0))
    store.save_profile(profile(specs[0], 40.0))
    found = Predictor(MACHINE, store).predict(specs[0], memory(specs[0]), ON_CPU)
    assert (found.tok_s, found.source) == (40.0, "measured")


def test_other_models_are_scaled_by_what_a_token_reads(
    store: Store, specs: tuple[ModelSpec, ModelSpec]
) -> None:
    """Twice the bytes, half the speed; tagged as estimated."""
    small, large = specs
    store.save_profile(profile(small, 100.0))
    read = [sum(memory(s).token_bytes(ON_CPU, 2048).values()) for s in specs]
    found = Predictor(MACHINE, store).predict(large, memory(large), ON_CPU)
    assert found.source == "estimated"
    assert found.tok_s == pytest.approx(100.0 * read[0] / read[1])


def test_another_machine_s_figures_are_not_used(
    store: Store, specs: tuple[ModelSpec, ModelSpec]
) -> None:
    """What was measured elsewhere says nothing here; nor does a file that is gone."""
    other = msgspec.structs.replace(MACHINE, host=HostInfo(os="linux", cpu_name="Another"))
    store.save_profile(profile(specs[0], 30.0, other))
    gone = msgspec.structs.replace(profile(specs[0], 30.0), model_path="/gone.gguf")
    store.save_profile(gone)
    found = Predictor(MACHINE, store).predict(specs[1], memory(specs[1]), ON_CPU)
    assert found.reason == "nothing_measured"


def test_the_speed_of_ram_is_a_bound(store: Store, specs: tuple[ModelSpec, ModelSpec]) -> None:
    """Where only RAM was measured, the figure is "at most" and tagged so."""
    small, large = specs
    request = SweepRequest()
    sweep_id = store.start_sweep(
        request=request,
        plan=a_plan(request),
        fingerprint=sweep_fingerprint(small, MACHINE, request),
        model=small,
        machine=MACHINE,
        policy_version=1,
    )
    reasons = (Reason(code="cpu_ceiling", data={"gb_s": 12.0}),)
    result = SweepResult(status=SweepStatus.COMPLETE, recommended=None, reasons=reasons)
    store.finish_sweep(sweep_id, result)
    store.save_profile(msgspec.structs.replace(profile(small, None), sweep_id=sweep_id))
    read = sum(memory(large).token_bytes(ON_CPU, 2048).values())
    found = Predictor(MACHINE, store).predict(large, memory(large), ON_CPU)
    assert found.source == "bound"
    assert found.tok_s == pytest.approx(12e9 / read)
