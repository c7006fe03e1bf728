"""The governor beside a model: readings in, pace and limits out, energy counted, all put back."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.machine import GpuSample
from app.domain.pacing import Pace
from app.power.changes import ChangeLog
from app.power.choice import PowerChoice
from app.power.client import HelperClient
from app.power.keeper import Keeper
from app.power.records import Mode
from app.power.speed import Load
from tests.fakes.governed_session import INFO, KEY, FakeMachine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sysfs is Linux's")

BALANCED = PowerChoice(mode=Mode.BALANCED)
WITH_HELPER = PowerChoice(mode=Mode.BALANCED, use_helper=True)


class Bench:
    """A keeper whose seconds pass by hand."""

    def __init__(self, folder: Path) -> None:
        self.machine = FakeMachine(folder)
        self.log = ChangeLog(folder)
        self.paces: list[float] = []
        self.keepers: list[Keeper] = []

    def keeper(self, choice: PowerChoice) -> Keeper:
        machine = self.machine
        keeper = Keeper(
            {KEY: INFO}, choice, readings=self.read, refresh=machine.latest_host,
            set_pace=self.pace, log=self.log, helper=self.helper, clock=lambda: machine.t_s,
            load=Load(weights_bytes=1000, kv_bytes_per_token=1),
        )  # fmt: skip
        self.keepers.append(keeper)
        return keeper

    def helper(self) -> HelperClient:
        return self.machine.helper()

    def read(self, key: str) -> list[GpuSample]:
        machine = self.machine
        return [s for s in machine.latest(key) if not machine.is_stale(s)]

    def pace(self, pace: Pace) -> None:
        self.paces.append(pace.duty)

    def run(self, keeper: Keeper, seconds: int) -> None:
        for _ in range(seconds):
            self.machine.t_s += 1.0
            keeper.tick()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    for keeper in bench.keepers:
        keeper.stop()


def heat(bench: Bench, keeper: Keeper, seconds: int = 90) -> None:
    bench.machine.temp_c = 82.0
    with keeper.answering():
        bench.run(keeper, seconds)


def test_without_the_helper_a_warm_device_is_paced(bench: Bench) -> None:
    """Balanced without rights means pauses, a status that says why, and a logged change."""
    keeper = bench.keeper(BALANCED)
    heat(bench, keeper)
    state = keeper.states[0]
    assert state.status is not None
    assert state.status.duty == bench.paces[-1] < 1.0
    assert state.status.action is not None
    assert state.status.action.code == "too_warm"
    assert {change.knob for change in bench.log.history()} == {"pacing"}
    keeper.stop()
    assert bench.paces[-1] == 1.0


def test_full_mode_does_not_pace(bench: Bench) -> None:
    """Full leaves the rest to the firmware: no pause at a temperature that balanced cools."""
    keeper = bench.keeper(PowerChoice())
    heat(bench, keeper)
    assert bench.paces == []


def test_with_the_helper_the_limit_is_lowered_and_put_back(bench: Bench) -> None:
    """The limit goes down with before and after on record, and is back at the end."""
    keeper = bench.keeper(WITH_HELPER)
    keeper.seek_helpers()
    heat(bench, keeper)
    assert bench.machine.limit_w() < 203.0
    first = bench.log.history()[0]
    assert (first.knob, first.before) == ("power_limit", 203.0)
    assert first.after == pytest.approx(first.requested)
    keeper.stop()
    assert bench.machine.limit_w() == 203.0
    assert bench.log.pending() == ()


def test_restore_is_one_click_and_lasts(bench: Bench) -> None:
    """Restored is restored, also with the next answers, until the user resumes."""
    keeper = bench.keeper(WITH_HELPER)
    keeper.seek_helpers()
    heat(bench, keeper)
    keeper.restore()
    assert bench.machine.limit_w() == 203.0
    heat(bench, keeper)
    assert bench.machine.limit_w() == 203.0
    keeper.resume()
    heat(bench, keeper)
    assert bench.machine.limit_w() < 203.0


def test_helper_that_is_not_there_is_said_and_paced(bench: Bench) -> None:
    """Asked for and not to be had: the state says why, and pauses do the work."""
    keeper = bench.keeper(WITH_HELPER)

    def missing() -> HelperClient:
        raise EnvironmentProblem("helper_not_installed", "It is not installed.")

    keeper._helper = missing
    keeper.seek_helpers()
    heat(bench, keeper)
    problem = keeper.states[0].problem
    assert problem is not None
    assert problem.code == "helper_not_installed"
    assert bench.paces[-1] < 1.0


def test_rights_given_back_underway(bench: Bench) -> None:
    """Without the helper from now on: the limit is put back, pacing takes over."""
    keeper = bench.keeper(WITH_HELPER)
    keeper.seek_helpers()
    heat(bench, keeper)
    keeper.choose(BALANCED)
    assert bench.machine.limit_w() == 203.0
    heat(bench, keeper)
    assert bench.machine.limit_w() == 203.0
    assert bench.paces[-1] < 1.0


def test_password_that_comes_too_late_changes_nothing(bench: Bench) -> None:
    """A helper that starts after the end is ended at once."""
    keeper = bench.keeper(WITH_HELPER)
    started = bench.machine.helper

    def slow() -> HelperClient:
        keeper.stop()  # the user closes the chat while the prompt is up
        return started()

    keeper._helper = slow
    keeper.seek_helpers()
    assert bench.machine.limit_w() == 203.0
    assert bench.log.pending() == ()
    with pytest.raises(Exception, match="did not start"):
        bench.machine.helpers[0].begin(KEY)


def test_cap_outside_the_range_is_refused_underway(bench: Bench) -> None:
    """A limit that the device cannot have is refused, not moved into its range (B20)."""
    keeper = bench.keeper(WITH_HELPER)
    keeper.seek_helpers()
    with pytest.raises(UsageProblem) as caught:
        keeper.choose(msgspec.structs.replace(WITH_HELPER, caps_w={KEY: 80.0}))
    assert caught.value.info.code == "cap_out_of_range"


def test_cap_holds_from_the_first_token(bench: Bench) -> None:
    """A chosen limit is set while the device is still cool."""
    keeper = bench.keeper(msgspec.structs.replace(WITH_HELPER, caps_w={"": 190.0}))
    keeper.seek_helpers()
    with keeper.answering():
        bench.run(keeper, 40)
    assert bench.machine.limit_w() == 190.0


def test_energy_of_an_answer_by_its_draw(bench: Bench) -> None:
    """Ten seconds at 200 W for 50 tokens are 40 J each; idle time counts for nothing."""
    keeper = bench.keeper(BALANCED)
    bench.run(keeper, 5)
    with keeper.answering():
        keeper.tick()
        bench.run(keeper, 10)
        keeper.progressed(50, 512)
    keeper.tick()
    bench.run(keeper, 100)
    assert keeper.answer.use.joules_per_token(keeper.answer.n_tok) == pytest.approx(40.0)
    assert keeper.answer.use.source == "draw"
    assert keeper.conversation == keeper.answer


def test_energy_by_the_devices_own_counter(bench: Bench) -> None:
    """Where there is a counter its difference counts, whatever the draw says."""
    keeper, machine = bench.keeper(BALANCED), bench.machine
    machine.energy_j = 5000.0
    for _ in range(2):
        with keeper.answering():
            keeper.tick()
            machine.energy_j += 90.0
            bench.run(keeper, 2)
            keeper.progressed(30)
        keeper.tick()
    assert keeper.conversation.use.joules == pytest.approx(180.0)
    assert keeper.conversation.use.source == "counter"
    assert keeper.conversation.n_tok == 60
    keeper.new_conversation()
    assert keeper.conversation.n_tok == 0


def test_unreadable_draw_gives_no_figure(bench: Bench) -> None:
    """Without draw and counter nothing is made up."""
    keeper = bench.keeper(BALANCED)
    bench.machine.power_w = None
    with keeper.answering():
        bench.run(keeper, 10)
        keeper.progressed(50)
    assert keeper.answer.use.joules_per_token(50) is None


def test_hanging_probe_counts_as_no_temperature(bench: Bench) -> None:
    """Stale readings are none: limits go back and the engine works half the time at most."""
    keeper = bench.keeper(WITH_HELPER)
    keeper.seek_helpers()
    heat(bench, keeper)
    bench.machine.stale = True
    heat(bench, keeper)
    assert bench.machine.limit_w() == 203.0
    assert bench.paces[-1] <= 0.5
    status = keeper.states[0].status
    assert status is not None
    assert "temperature_lost" in {note.code for note in status.notes}


def test_lost_while_capped(bench: Bench) -> None:
    """A GPU that is gone while its limit is ours: the helper ends, nothing more is asked of it."""
    keeper = bench.keeper(WITH_HELPER)
    keeper.seek_helpers()
    heat(bench, keeper)
    bench.machine.lost = True
    heat(bench, keeper, 5)
    status = keeper.states[0].status
    assert status is not None
    assert [note.code for note in status.notes] == ["device_lost"]
    assert not status.has_helper


def test_thread_governs_and_ends(bench: Bench) -> None:
    """Started for real it reads, and stopping ends its thread and puts everything back."""
    keeper = bench.keeper(BALANCED)
    keeper.start()
    with keeper.answering():
        pass
    keeper.stop()
    assert keeper._thread is None
