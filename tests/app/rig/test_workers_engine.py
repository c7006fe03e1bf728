"""The worker rig with the real engine: the demo model, and a CPU-backed RPC device."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import RigEvent, TrialFinished, TrialProgress
from app.domain.machine import GpuKind
from app.domain.model import ModelSpec
from app.domain.outcome import Outcome
from app.domain.settings import LoadMode, Settings, SplitMode, Switch
from app.domain.sweep import SearchHost
from app.domain.trial import Trial, TrialRequest, Workload
from app.domain.units import MIB
from app.estimate.formula import Formula
from app.gguf import read_model
from app.memory.memory import formula_device
from app.rig.planner import Planner
from app.rig.process import Launch
from app.rig.workers import WorkerRig
from app.worker.protocol import NO_BREAKDOWN
from tests.fakes.demo import demo_spec
from tests.fakes.models import make_model
from tests.fakes.rpc_device import rpc_device

pytestmark = pytest.mark.engine

SMALL = Settings(n_gpu_layers=0, n_ctx=512, n_threads=1, load_mode=LoadMode.NONE)
WORK = Workload(n_prompt=16, n_gen=8)
_MIDDLE = """
import sys, time
from app.rig.process import Launch, drain, start_worker
from app.worker import protocol
from app.domain.settings import Settings
from app.domain.trial import Workload
settings = Settings(n_gpu_layers=0, n_ctx=8192, n_ubatch=2048, n_threads=1)
worker = drain(start_worker(Launch()))
drain(worker.ask(protocol.Load(model_path=sys.argv[1], settings=settings), "load", lambda _: 60))
work = Workload(n_prompt=8000)
question = protocol.RunTrial(settings=settings, workload=work, min_reps=3, max_reps=3, max_s=60)
for reply in worker.ask(question, "context", lambda _: 600):
    if isinstance(reply, protocol.TrialProgress) and reply.phase == "warm_up":
        print(worker.pid, flush=True)
"""


def rig_with(*endpoints: str, spec: ModelSpec | None = None) -> WorkerRig:
    host = SearchHost(cores_physical=1, cores_logical=1, ram_bytes=1 << 34)
    return WorkerRig(spec or demo_spec(), host, launch=Launch(rpc=endpoints))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> ModelSpec:
    return read_model(make_model(tmp_path_factory.mktemp("tiny") / "tiny.gguf"))


@pytest.fixture(scope="module")
def moe(tmp_path_factory: pytest.TempPathFactory) -> ModelSpec:
    return read_model(make_model(tmp_path_factory.mktemp("moe") / "moe.gguf", "qwen3moe"))


@pytest.fixture(scope="module")
def device() -> Iterator[str]:
    with rpc_device() as endpoint:
        yield endpoint


def request(settings: Settings = SMALL, work: Workload = WORK) -> TrialRequest:
    return TrialRequest(
        stage="test", settings=settings, workload=work, min_reps=1, max_reps=1, max_s=1
    )


def run(rig: WorkerRig, settings: Settings) -> Trial:
    last: RigEvent | None = None
    for event in rig.run_trial(request(settings)):
        last = event
    assert isinstance(last, TrialFinished)
    return last.trial


@pytest.fixture(scope="module")
def cpu_rig() -> Iterator[WorkerRig]:
    rig = rig_with()
    yield rig
    rig.close()


def test_trial_of_the_demo_model(cpu_rig: WorkerRig) -> None:
    """A real trial on the CPU has speeds, bytes and concrete settings, and uses no device."""
    trial = run(cpu_rig, SMALL)
    assert trial.outcome is Outcome.OK, trial.error
    assert trial.prefill[0].ns > 0
    assert trial.decode[0].n_tok == 8
    assert trial.device_bytes == {}
    planned = cpu_rig.plan(SMALL)
    assert not isinstance(planned, ErrorInfo)
    assert trial.host_bytes == planned[-1].total_bytes
    assert cpu_rig.space().devices == ()


def test_cancelled_trial_keeps_the_weights(cpu_rig: WorkerRig) -> None:
    """Closing reaches into a running batch of several seconds; nothing is loaded again."""
    first = run(cpu_rig, SMALL)
    long = msgspec.structs.replace(SMALL, n_ctx=8192, n_ubatch=2048)
    events = cpu_rig.run_trial(request(long, Workload(n_prompt=8000)))
    for event in events:
        if isinstance(event, TrialProgress) and event.phase == "warm_up":
            break
    events.close()  # type: ignore[attr-defined]
    assert run(cpu_rig, SMALL).load_id == first.load_id


def test_cancelled_load_can_be_repeated() -> None:
    """Closing while the weights are read leaves no half model behind."""
    rig = rig_with()
    events = rig.run_trial(request())
    for event in events:
        if isinstance(event, TrialProgress) and event.phase == "load":
            break
    events.close()  # type: ignore[attr-defined]
    trial = run(rig, SMALL)
    rig.close()
    assert trial.outcome is Outcome.OK, trial.error
    assert trial.load_id == 2


def test_worker_ends_with_its_parent() -> None:
    """After kill -9 of the parent the child is gone although the engine was computing."""
    root = Path(__file__).resolve().parents[3]
    middle = subprocess.Popen(
        [sys.executable, "-c", _MIDDLE, demo_spec().path], stdout=subprocess.PIPE, cwd=root
    )
    try:
        assert middle.stdout
        worker = psutil.Process(int(middle.stdout.readline()))
    finally:
        middle.kill()
        middle.communicate()
    psutil.wait_procs([worker], timeout=60)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("n_gpu_layers", [0, 2, 5])
def test_offload_is_real(device: str, tiny: ModelSpec, n_gpu_layers: int) -> None:
    """On another device requested is effective and its bytes are those of the dry run."""
    settings = msgspec.structs.replace(SMALL, n_gpu_layers=n_gpu_layers, devices=("RPC0",))
    rig = rig_with(device, spec=tiny)
    (found,) = rig.space().devices
    planned = rig.plan(settings)
    trial = run(rig, settings)
    again = rig.plan(settings)
    rig.close()
    assert (found.id, found.kind, found.backend) == ("RPC0", GpuKind.REMOTE, "RPC")
    assert trial.outcome is Outcome.OK, trial.error
    assert trial.effective
    assert trial.effective.n_gpu_layers == n_gpu_layers
    assert trial.effective.devices == ("RPC0",)
    assert not isinstance(planned, ErrorInfo)
    assert trial.device_bytes == {"RPC0": planned[0].total_bytes}
    assert planned == again
    weights = planned[0].weights_bytes or 0
    assert (weights > 0) == (n_gpu_layers > 0)


def test_every_layer_is_the_most_there_can_be(device: str, tiny: ModelSpec) -> None:
    """More layers than the model has are taken as all of them."""
    rig = rig_with(device, spec=tiny)
    trial = run(rig, msgspec.structs.replace(SMALL, n_gpu_layers=99))
    rig.close()
    assert trial.effective
    assert trial.effective.n_gpu_layers == tiny.max_gpu_layers


def test_no_layers_and_no_named_device_is_the_cpu_only(device: str, tiny: ModelSpec) -> None:
    """Zero layers leave a device alone unless it is named."""
    rig = rig_with(device, spec=tiny)
    trial = run(rig, SMALL)
    rig.close()
    assert trial.device_bytes == {}
    assert trial.effective
    assert trial.effective.devices == ()


def test_experts_stay_in_ram(device: str, moe: ModelSpec) -> None:
    """Each layer of ``n_cpu_moe`` moves its experts off the device, as the dry run says."""
    rig = rig_with(device, spec=moe)
    weights = []
    for n_cpu_moe in (0, 2, moe.n_layer):
        settings = msgspec.structs.replace(SMALL, n_gpu_layers=99, n_cpu_moe=n_cpu_moe)
        planned = rig.plan(settings)
        trial = run(rig, settings)
        assert not isinstance(planned, ErrorInfo)
        assert trial.effective
        assert trial.effective.n_cpu_moe == n_cpu_moe
        assert trial.device_bytes == {"RPC0": planned[0].total_bytes}
        weights.append(planned[0].weights_bytes or 0)
    rig.close()
    experts = sum(t.n_bytes for t in moe.tensors if "_exps" in t.name)
    assert weights[0] - weights[2] == experts
    assert weights[0] - weights[1] == experts * 2 // moe.n_layer


@pytest.mark.parametrize(
    ("rules", "n_cpu_moe", "slack_bytes"),
    [
        ("attn_k=CPU,token_embd=RPC0", 0, 0),
        ("exps=RPC0", 2, 0),
        ("nothing=CPU", 2, 0),
        (r"blk\.1\.=CPU", 2, MIB),
    ],
)
def test_tensors_placed_by_name(
    device: str, moe: ModelSpec, rules: str, n_cpu_moe: int, slack_bytes: int
) -> None:
    """Formula, dry run and real load agree byte for byte; rules decide before ``n_cpu_moe``.

    With a whole block in RAM and every layer on the device a dry run forgets where llama.cpp wants
    the norms (it resets its scheduler in between): one batch of activations lies elsewhere.
    """
    rig = rig_with(device, spec=moe)
    asked = msgspec.structs.replace(
        SMALL, n_gpu_layers=99, n_cpu_moe=n_cpu_moe, override_tensor=rules
    )
    planned, trial = rig.plan(asked), run(rig, asked)
    bare = rig.plan(msgspec.structs.replace(SMALL, n_gpu_layers=99))
    space = rig.space()
    rig.close()
    assert not isinstance(planned, ErrorInfo), planned
    assert not isinstance(bare, ErrorInfo)
    assert trial.outcome is Outcome.OK, trial.error
    assert trial.effective
    assert trial.effective.override_tensor == rules
    assert trial.device_bytes["RPC0"] == pytest.approx(planned[0].total_bytes, abs=slack_bytes)
    formula = Formula(moe, tuple(formula_device(d) for d in space.devices)).estimate(asked)
    assert [p.weights_bytes for p in formula] == [p.weights_bytes for p in planned]
    if rules == "exps=RPC0":
        assert planned[0].weights_bytes == bare[0].weights_bytes


@pytest.mark.parametrize(
    ("n_gpu_layers", "rules"), [(99, "attn_v=CPU,token_embd=RPC0"), (0, ".=CPU")]
)
def test_tensors_of_a_dense_model_placed_by_name(
    device: str, tiny: ModelSpec, n_gpu_layers: int, rules: str
) -> None:
    """Formula, dry run and real load agree on a device and on the CPU alone."""
    rig = rig_with(device, spec=tiny)
    asked = msgspec.structs.replace(SMALL, n_gpu_layers=n_gpu_layers, override_tensor=rules)
    planned, trial = rig.plan(asked), run(rig, asked)
    space = rig.space()
    rig.close()
    assert not isinstance(planned, ErrorInfo), planned
    gpus = {p.device: p.total_bytes for p in planned if p.device != "host"}
    assert (trial.outcome, trial.device_bytes) == (Outcome.OK, gpus)
    formula = Formula(tiny, tuple(formula_device(d) for d in space.devices)).estimate(asked)
    assert [p.weights_bytes for p in formula] == [p.weights_bytes for p in planned]


def test_rules_the_engine_cannot_follow_are_refused(device: str, moe: ModelSpec) -> None:
    """An unknown buffer and a broken pattern end in a sentence, in a dry run and in a trial."""
    rig = rig_with(device, spec=moe)
    try:
        for rules, code in (("exps=CUDA7", "unknown_buffer"), ("(=CPU", "bad_overrides")):
            asked = msgspec.structs.replace(SMALL, n_gpu_layers=99, override_tensor=rules)
            planned, trial = rig.plan(asked), run(rig, asked)
            assert isinstance(planned, ErrorInfo)
            assert trial.error
            assert planned.code == trial.error.code == code
            assert trial.outcome is Outcome.UNSUPPORTED
    finally:
        rig.close()


@pytest.mark.parametrize(("n_gpu_layers", "slack_bytes"), [(4, 0), (5, 8 * MIB)])
def test_two_devices_share_the_layers(
    device: str, tiny: ModelSpec, n_gpu_layers: int, slack_bytes: int
) -> None:
    """Each device holds a part, as the dry run says.

    With every layer on two devices llama.cpp works in a pipeline, whose copies of the inputs a
    dry run counts for the last device although it allocates fewer.
    """
    settings = msgspec.structs.replace(SMALL, n_gpu_layers=n_gpu_layers)
    with rpc_device() as second:
        rig = rig_with(device, second, spec=tiny)
        planned = rig.plan(settings)
        trial = run(rig, settings)
        rig.close()
    assert not isinstance(planned, ErrorInfo)
    assert trial.outcome is Outcome.OK, trial.error
    assert [d.device for d in planned] == ["RPC0", "RPC1", "host"]
    for need in planned[:-1]:
        assert need.weights_bytes
        assert 0 <= need.total_bytes - trial.device_bytes[need.device] <= slack_bytes


def test_weights_that_do_not_fit_the_device() -> None:
    """A device too small for the weights is ``out_of_memory``; the CPU then still works."""
    with rpc_device(extra_bytes=100 * MIB) as endpoint:
        rig = rig_with(endpoint)
        full = run(rig, msgspec.structs.replace(SMALL, n_gpu_layers=19))
        none = run(rig, SMALL)
        rig.close()
    assert full.outcome is Outcome.OUT_OF_MEMORY
    assert full.error
    assert full.error.hint
    assert full.log_tail
    assert none.outcome is Outcome.OK, none.error
    assert (full.load_id, none.load_id) == (1, 2)


def test_context_that_does_not_fit_the_device_keeps_the_weights() -> None:
    """Out of memory in the context needs no new load: a shorter one runs on the same weights."""
    every = msgspec.structs.replace(SMALL, n_gpu_layers=19)
    with rpc_device(extra_bytes=500 * MIB) as endpoint:
        rig = rig_with(endpoint)
        full = run(rig, msgspec.structs.replace(every, n_ctx=1 << 18))
        small = run(rig, every)
        rig.close()
    assert full.outcome is Outcome.OUT_OF_MEMORY, full.error
    assert small.outcome is Outcome.OK, small.error
    assert (full.load_id, small.load_id) == (1, 1)


def test_remote_device_that_vanishes_is_lost(tiny: ModelSpec) -> None:
    """A trial whose device is switched off ends as ``device_lost``, not in a traceback."""
    with rpc_device() as endpoint:
        rig = rig_with(endpoint, spec=tiny)
        rig.space()
    trial = run(rig, msgspec.structs.replace(SMALL, n_gpu_layers=19))
    rig.close()
    assert trial.outcome is Outcome.DEVICE_LOST
    assert trial.error
    assert endpoint in trial.error.message


def test_remote_device_that_is_not_there_is_a_problem() -> None:
    """A wrong address is told to the user before anything starts."""
    planner = Planner(Launch(rpc=("127.0.0.1:1",)), "")
    with pytest.raises(EnvironmentProblem) as caught:
        planner.engine()
    assert caught.value.info.code == "remote_unreachable"


@pytest.mark.skipif(sys.platform == "win32", reason="libraries are named otherwise there")
def test_an_engine_without_backends_is_named(tmp_path: Path) -> None:
    """--engine-dir at the libraries alone: said at once, not as a model that does not load."""
    found = importlib.util.find_spec("llama_cpp")
    assert found is not None
    assert found.origin is not None
    for library in (Path(found.origin).parent / "lib").iterdir():
        if library.name.partition(".")[0] in {"libllama", "libggml", "libggml-base"}:
            (tmp_path / library.name).symlink_to(library)
    with pytest.raises(EnvironmentProblem) as caught:
        Planner(Launch(engine_dir=str(tmp_path)), "").engine()
    assert caught.value.info.code == "engine_unusable"
    assert str(tmp_path) in caught.value.info.message


def on_two(rig: WorkerRig, **changes: object) -> dict[str, int]:
    """Return what each of two devices would hold of the tiny model."""
    devices = tuple(d.id for d in rig.space().devices)
    settings = msgspec.structs.replace(SMALL, n_gpu_layers=99, devices=devices, **changes)
    planned = rig.plan(settings)
    assert not isinstance(planned, ErrorInfo), planned
    return {d.device: d.weights_bytes or 0 for d in planned if d.device != "host"}


def test_split_over_two_devices(device: str, tiny: ModelSpec) -> None:
    """The shares move weights from one device to the other; nonsense is refused, not launched."""
    with rpc_device() as second:
        rig = rig_with(device, second, spec=tiny)
        try:
            first, other = (d.id for d in rig.space().devices)
            left = on_two(rig, tensor_split="9,1")
            right = on_two(rig, tensor_split="1,9")
            assert left[first] > right[first]
            assert left[other] < right[other]
            bad = rig.plan(msgspec.structs.replace(SMALL, devices=(first,), tensor_split="0,0"))
            assert isinstance(bad, ErrorInfo)
            assert bad.code == "bad_tensor_split"
        finally:
            rig.close()


def test_other_split_modes_over_two_devices(device: str, tiny: ModelSpec) -> None:
    """``none`` is the first device; ``tensor`` runs, uncounted; ``row`` is refused in words."""
    with rpc_device() as second:
        rig = rig_with(device, second, spec=tiny)
        try:
            both = tuple(d.id for d in rig.space().devices)
            asked = msgspec.structs.replace(SMALL, n_gpu_layers=99, devices=both)
            alone = msgspec.structs.replace(asked, split_mode=SplitMode.NONE)
            assert run(rig, alone).effective.devices == both[:1]  # type: ignore[union-attr]
            assert set(on_two(rig, split_mode=SplitMode.NONE)) == {both[0]}
            shared = run(rig, msgspec.structs.replace(asked, split_mode=SplitMode.TENSOR))
            assert (shared.outcome, shared.device_bytes) == (Outcome.OK, {})
            uncounted = rig.plan(msgspec.structs.replace(asked, split_mode=SplitMode.TENSOR))
            assert isinstance(uncounted, ErrorInfo)
            assert uncounted.code == NO_BREAKDOWN
            in_ram = msgspec.structs.replace(SMALL, split_mode=SplitMode.TENSOR)
            assert run(rig, in_ram).outcome is Outcome.OK
            by_rows = msgspec.structs.replace(asked, split_mode=SplitMode.ROW)
            refused = rig.plan(by_rows)
            assert isinstance(refused, ErrorInfo)
            assert refused.code == "no_split_buffers"
            trial = run(rig, by_rows)
            assert (trial.outcome, trial.error) == (Outcome.UNSUPPORTED, refused)
        finally:
            rig.close()


def test_cache_and_batches_off_the_device(device: str, tiny: ModelSpec) -> None:
    """Without ``offload_kqv`` the device holds no cache; a trial runs with both switched off."""
    rig = rig_with(device, spec=tiny)
    try:
        name = rig.space().devices[0].id
        on = msgspec.structs.replace(SMALL, n_gpu_layers=99, devices=(name,))
        off = msgspec.structs.replace(on, offload_kqv=Switch.OFF, op_offload=Switch.OFF)
        kv = {}
        for settings in (on, off):
            planned = rig.plan(settings)
            assert not isinstance(planned, ErrorInfo)
            kv[settings.offload_kqv] = planned[0].kv_cache_bytes
        assert kv[Switch.ON]
        assert not kv[Switch.OFF]
        trial = run(rig, off)
        assert trial.outcome is Outcome.OK, trial.error
        assert trial.effective is not None
        assert trial.effective.offload_kqv is Switch.OFF
    finally:
        rig.close()
