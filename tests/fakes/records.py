"""Any record of the domain, for property tests; and small valid ones, for examples."""

import types
import typing
from enum import Enum
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from app.domain.machine import EngineDevice, EngineInfo, GpuKind, HostInfo, Machine
from app.domain.model import ModelSpec
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import (
    SearchHost,
    SearchModel,
    SearchSpace,
    SweepPlan,
    SweepRequest,
)
from app.domain.trial import Sample, Trial, TrialRequest, Workload

S = TypeVar("S", bound=msgspec.Struct)

_EXACT_JSON_INT = 2**53
_LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-_EXACT_JSON_INT, _EXACT_JSON_INT),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=20),
    bool: st.booleans(),
    type(None): st.none(),
}


def records(kind: type[S]) -> st.SearchStrategy[S]:
    """Any valid value of a record type, nested records included."""
    fields = {f.name: _values(f.type) for f in msgspec.structs.fields(kind)}
    return st.builds(kind, **fields)


def _values(kind: Any) -> st.SearchStrategy[Any]:
    if kind in _LEAVES:
        return _LEAVES[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        return st.one_of(*(_values(a) for a in arguments))
    if origin is dict:
        return st.dictionaries(_values(arguments[0]), _values(arguments[1]), max_size=3)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(_values(arguments[0]), max_size=3).map(tuple)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    return records(kind)


def a_model(fingerprint: str = "f00d", path: str = "/models/tiny.gguf") -> ModelSpec:
    """A small dense model without tensors."""
    return ModelSpec(
        path=path,
        files=(path,),
        fingerprint=fingerprint,
        arch="llama",
        name="Tiny",
        n_layer=4,
        n_embd=64,
        n_vocab=256,
        n_ctx_train=4096,
        n_head=(4,) * 4,
        n_head_kv=(2,) * 4,
        n_embd_head_k=(16,) * 4,
        n_embd_head_v=(16,) * 4,
        file_bytes=1000,
        weights_bytes=900,
        tensors=(),
    )


def a_machine(device: str = "CUDA0") -> Machine:
    """A machine with one GPU that only the engine sees."""
    gpu = EngineDevice(
        name=device, backend="CUDA", description="A card", kind=GpuKind.DISCRETE, total_bytes=8
    )
    engine = EngineInfo(
        version="0.3", llama_version="b1", backends=("CUDA",), devices=(gpu,), supports_offload=True
    )
    return Machine(host=HostInfo(os="linux", cpu_name="A CPU"), engine=engine)


def a_plan(request: SweepRequest) -> SweepPlan:
    """A plan without stages."""
    space = SearchSpace(
        model=SearchModel(name="Tiny", n_layer=4, file_bytes=1000),
        host=SearchHost(cores_physical=2, cores_logical=4, ram_bytes=1 << 30),
        devices=(),
        load_s=1.0,
    )
    return SweepPlan(
        request=request,
        space=space,
        workload=Workload(),
        n_ctx=4096,
        stages=(),
        max_n_gpu_layers=5,
        time_low_s=1.0,
        time_high_s=2.0,
    )


def a_trial(n_gpu_layers: int = 5, outcome: Outcome = Outcome.OK) -> Trial:
    """A trial with one sample of each phase."""
    settings = Settings(n_gpu_layers=n_gpu_layers)
    return Trial(
        request=TrialRequest(stage="layers", settings=settings, workload=Workload()),
        load_id=1,
        outcome=outcome,
        effective=settings,
        prefill=(Sample(n_tok=512, ns=1_000_000),),
        decode=(Sample(n_tok=64, ns=1_000_000),),
        ended_utc="2025-01-01T00:00:00Z",
    )
