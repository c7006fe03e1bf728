"""Heat and power as the surfaces see them, on a simulated card with a real helper process."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from app.cli.chat_screen import orderly_end
from app.cli.power_options import tell_pending
from app.domain.errors import UsageProblem
from app.domain.events import ServerStarted
from app.domain.machine import EngineDevice, Gpu, GpuInfo, GpuKind, HostInfo, Machine
from app.domain.model import TensorInfo
from app.domain.pacing import Pace
from app.domain.settings import Settings
from app.power.changes import ChangeLog
from app.power.choice import PowerChoice
from app.power.records import Mode
from app.rig.lease import Lease
from app.runtime import HOME_VARIABLE
from app.session import Chat, Server
from app.session.power import Power, load_of
from app.session.power_views import device_of, governed_gpus
from app.worker.protocol import ChatMessage
from tests.fakes.faulty_worker import faulty
from tests.fakes.governed_session import INFO, KEY, FakeMachine
from tests.fakes.power_sysfs import limit_w
from tests.fakes.records import a_model
from tests.fakes.shapes import a_spec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sysfs is Linux's")

MODEL = msgspec.structs.replace(a_model(), file_bytes=1000)
ON_GPU = Settings(n_gpu_layers=4, n_ctx=512, n_threads=1)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    return FakeMachine(tmp_path)


@pytest.fixture
def power(machine: FakeMachine, tmp_path: Path) -> Iterator[Power]:
    made = Power(
        lambda _: {KEY: INFO}, lambda: machine, helper=machine.helper, log=ChangeLog(tmp_path)
    )
    yield made
    made.end()


def no_pace(_pace: Pace) -> None:
    pass


def test_a_choice_lasts_where_it_should(power: Power, tmp_path: Path) -> None:
    """Kept choices are there in the next session, passing ones are not."""
    power.choose(PowerChoice(mode=Mode.QUIET))
    power.choose(PowerChoice(mode=Mode.BALANCED), keep=False)
    assert power.choice.mode is Mode.BALANCED
    assert Power(lambda _: {}, lambda: FakeMachine(tmp_path / "other")).choice.mode is Mode.QUIET


def test_a_model_on_the_cpu_has_nothing_to_govern(power: Power) -> None:
    """No layer on a GPU: its limit is none of our business."""
    power.begin(a_model(), msgspec.structs.replace(ON_GPU, n_gpu_layers=0), no_pace)
    assert power.state.devices == ()


def test_the_state_follows_the_device_in_use(power: Power) -> None:
    """While a model is loaded its device is in the status line, and energy is counted."""
    keeper = power.begin(a_model(), ON_GPU, no_pace)
    assert keeper is not None
    keeper.tick()
    device = power.state.devices[0]
    assert (device.name, device.limit_w, device.power_w) == ("RX test", 203.0, 200.0)
    assert device.status is not None
    assert device.status.temp_c == 60.0
    power.end()
    assert power.state.devices == ()


def test_cost_by_the_users_tariff(power: Power, machine: FakeMachine) -> None:
    """7.2 kJ for 20 tokens are 0.1 kWh per 1,000 tokens: 3 cents at 0.30."""
    power.choose(PowerChoice(price_per_kwh=0.30, currency="EUR"), keep=False)
    keeper = power.begin(a_model(), ON_GPU, no_pace)
    assert keeper is not None
    with keeper.answering():
        machine.energy_j = 0.1
        keeper.tick()
        machine.t_s += 3.0
        machine.energy_j = 7200.1
        keeper.progressed(20)
    power.measure()
    report = power.state.conversation
    assert report is not None
    assert report.j_per_tok == pytest.approx(360.0)
    assert report.watt_hours == pytest.approx(2.0)
    assert report.cost_per_1000 == pytest.approx(0.03)
    assert (report.currency, report.source) == ("EUR", "counter")


def test_what_an_earlier_run_left_is_found_and_put_back(
    power: Power, machine: FakeMachine, tmp_path: Path
) -> None:
    """RigTune and its helper were killed: the next start knows, and one call restores."""
    log = ChangeLog(tmp_path)
    log.mark(KEY, KEY)
    left = next(tmp_path.glob("power-pending-*.json"))
    left.write_text(left.read_text().replace('"pid":', '"pid":9'))  # another process, now dead
    assert [p.pci_id for p in power.pending()] == [KEY]
    assert power.restore_pending() == ()  # the helper had put it back itself
    assert power.pending() == ()
    assert limit_w(machine.hwmon) == 203.0


def test_what_a_running_one_changes_is_not_pending(power: Power, tmp_path: Path) -> None:
    """A second window does not offer to restore what the first one holds."""
    ChangeLog(tmp_path).mark(KEY, KEY)
    left = next(tmp_path.glob("power-pending-*.json"))
    document = msgspec.json.decode(left.read_bytes())
    parent = psutil.Process().parent()
    assert parent is not None
    document |= {"pid": parent.pid, "started_s": parent.create_time()}
    left.write_bytes(msgspec.json.encode(document))
    assert power.pending() == ()


def test_only_devices_in_use_are_governed() -> None:
    """Named ones; else the discrete ones; an integrated GPU only where there is nothing else."""
    card = Gpu(
        key="GPU-1", info=msgspec.structs.replace(INFO, kind=GpuKind.DISCRETE),
        engine=(EngineDevice(name="CUDA0", backend="CUDA", description="", kind=GpuKind.DISCRETE),),
    )  # fmt: skip
    chip = Gpu(
        key="igpu", info=GpuInfo(probe="drm", kind=GpuKind.INTEGRATED),
        engine=(EngineDevice(name="Vulkan0", backend="V", description="", kind=INFO.kind),),
    )  # fmt: skip
    blind = Gpu(key="rpc")
    machine = Machine(host=HostInfo(os="linux"), gpus=(chip, card, blind))
    assert list(governed_gpus(machine, ())) == ["GPU-1"]
    assert list(governed_gpus(machine, ("Vulkan0",))) == ["igpu"]
    assert list(governed_gpus(Machine(host=HostInfo(os="linux"), gpus=(chip,)), ())) == ["igpu"]
    assert governed_gpus(Machine(host=HostInfo(os="linux"), gpus=(blind,)), ()) == {}


def test_an_administrator_is_told_the_exact_command(machine: FakeMachine) -> None:
    """Without the helper the way by hand is shown, with the one back; or why there is none."""
    info = msgspec.structs.replace(
        INFO, power_limit_min_w=92.0, power_limit_max_w=233.0, power_limit_default_w=203.0
    )
    device = device_of(KEY, info, machine.latest(KEY))
    assert device.range_w == (101.5, 203.0)
    assert device.commands[0].set.endswith(f"devices/{KEY}/hwmon/hwmon*/power1_cap")
    assert device.commands[0].set.startswith("echo 162000000 | sudo tee ")
    assert "echo 203000000 " in device.commands[0].undo
    fixed = device_of(KEY, msgspec.structs.replace(info, power_limit_settable=False), ())
    assert (fixed.range_w, fixed.why_not, fixed.commands) == (None, "not_adjustable", ())


def test_a_chat_runs_under_the_governor(power: Power, machine: FakeMachine, tmp_path: Path) -> None:
    """A warm card gets a lower limit while the chat answers; unloading puts it back."""
    power.choose(PowerChoice(mode=Mode.BALANCED, use_helper=True), keep=False)
    chat = Chat(
        MODEL, ON_GPU, faulty(), None, (), lease=Lease("chat", tmp_path / "lock"), power=power
    )
    with chat:
        keeper = chat._keeper
        assert keeper is not None
        keeper.seek_helpers()
        machine.temp_c = 82.0
        for _ in range(20):
            list(chat.generate((ChatMessage(role="user", content="hi"),)))
        with keeper.answering():
            keeper.tick()
        assert machine.limit_w() < 203.0
        assert power.state.conversation is not None
        assert power.state.conversation.n_tok > 0
    assert machine.limit_w() == 203.0
    assert power.state.devices == ()
    assert ChangeLog(tmp_path).pending() == ()


def test_a_chat_that_is_told_to_end_puts_the_limit_back(
    power: Power, machine: FakeMachine, tmp_path: Path
) -> None:
    """A request to end (SIGTERM) leaves the chat like an exception, in the middle of an answer."""
    power.choose(PowerChoice(mode=Mode.BALANCED, use_helper=True), keep=False)
    chat = Chat(
        MODEL, ON_GPU, faulty(), None, (), lease=Lease("chat", tmp_path / "lock"), power=power
    )

    def talk() -> None:
        with orderly_end(), chat:
            keeper = chat._keeper
            assert keeper is not None
            keeper.seek_helpers()
            machine.temp_c = 82.0
            with keeper.answering():
                for _ in range(20):
                    keeper.tick()
                assert machine.limit_w() < 203.0
                signal.raise_signal(signal.SIGTERM)

    with pytest.raises(SystemExit):
        talk()
    assert machine.limit_w() == 203.0
    assert ChangeLog(tmp_path).pending() == ()
    assert not chat.is_running


def test_put_back_holds_for_the_next_model(power: Power, machine: FakeMachine) -> None:
    """After one click nothing is turned, whichever model is loaded, until the user resumes."""
    power.choose(PowerChoice(mode=Mode.BALANCED), keep=False)
    machine.temp_c = 82.0
    paces: list[float] = []
    power.restore()
    keeper = power.begin(MODEL, ON_GPU, lambda pace: paces.append(pace.duty))
    assert keeper is not None
    with keeper.answering():
        keeper.tick()
        assert power.state.is_paused
        assert paces == []
        power.resume()
        keeper.tick()
    assert paces[0] < 1.0


def test_a_refused_limit_leaves_the_choice_as_it_was(power: Power) -> None:
    """80 W are less than the card's floor: a usage problem, and nothing else changes."""
    power.choose(PowerChoice(use_helper=True), keep=False)
    keeper = power.begin(MODEL, ON_GPU, no_pace)
    assert keeper is not None
    keeper.seek_helpers()
    with pytest.raises(UsageProblem):
        power.choose(PowerChoice(use_helper=True, caps_w={"": 80.0}))
    assert power.choice.caps_w == {}
    assert keeper._choice.caps_w == {}


def test_a_server_runs_under_the_governor(
    power: Power, machine: FakeMachine, tmp_path: Path
) -> None:
    """From its start to its end the devices of a server are governed."""
    server = Server(
        MODEL, ON_GPU, faulty(), None, (), lease=Lease("serve", tmp_path / "lock"), power=power
    )
    seen = []
    for event in server.run():
        if isinstance(event, ServerStarted):
            seen = [state.key for state in power.state.devices]
            break
    assert seen == [KEY]


def test_tell_pending(power: Power, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any command says what is left behind, with the command that puts it back."""
    tell_pending(power)
    assert capsys.readouterr().err == ""
    ChangeLog(tmp_path).mark(KEY, KEY)
    tell_pending(power)
    assert "rigtune power --restore" in capsys.readouterr().err


def test_of_the_experts_only_those_used_are_read() -> None:
    """A filling context slows a mixture of experts far more than its size suggests: no heat."""
    tensors = (
        TensorInfo(name="blk.0.attn_q.weight", type="Q8_0", shape=(1,), n_bytes=100),
        TensorInfo(name="blk.0.ffn_up_exps.weight", type="Q8_0", shape=(1,), n_bytes=1600),
    )
    spec = a_spec(n_layer=1, tensors=tensors, n_expert=16, n_expert_used=2)
    assert load_of(spec, ON_GPU).weights_bytes == 300
    assert load_of(a_spec(n_layer=1, tensors=tensors), ON_GPU).weights_bytes == 1700
