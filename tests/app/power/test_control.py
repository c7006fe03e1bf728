"""The governor in use: readings in, a real helper process on a fake sysfs out, a log beside."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.machine import GpuInfo
from app.domain.pacing import Pace
from app.power.changes import ChangeLog
from app.power.client import HelperClient, HelperGone, PipeLink
from app.power.control import PowerControl, PowerStatus
from app.power.devices import governed_device
from app.power.known import FILE, Coolers
from app.power.protocol import KeepAlive
from app.power.records import Mode, Reading, Wish
from app.power.start import restore_pending, start_control
from tests.fakes.power_sysfs import AMD_PCI, limit_w, make_amd
from tests.fakes.thermal_cards import LAPTOP_4060
from tests.fakes.thermal_plant import Plant

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sysfs is Linux's")

SCRIPT = Path(__file__).resolve().parents[2] / "fakes" / "power_helper.py"
INFO = GpuInfo(probe="drm", pci_id=AMD_PCI, vendor="amd", temp_slowdown_c=83.0)


class Bench:
    """A fake machine, a helper on it, and a clock that is turned by hand."""

    def __init__(self, folder: Path) -> None:
        self.root, self.journal, self.logs = folder / "root", folder / "journal", folder / "logs"
        self.logs.mkdir()
        self.hwmon = make_amd(self.root)
        self.now_s = 0.0
        self.paces: list[float] = []
        self.log = ChangeLog(self.logs)
        self.controls: list[PowerControl] = []
        self.client: HelperClient | None = None

    def start(self, *, has_helper: bool = True, coolers: Coolers | None = None) -> PowerControl:
        self.client, facts = None, None
        if has_helper:
            self.client = self.helper()
            facts = self.client.begin(AMD_PCI)
        control = PowerControl(
            governed_device(INFO, facts),
            Wish(),
            set_pace=self.pace,
            log=self.log,
            helper=self.client,
            coolers=coolers,
            clock=lambda: self.now_s,
        )
        self.controls.append(control)
        return control

    def helper(self) -> HelperClient:
        command = [sys.executable, str(SCRIPT), str(self.root), str(self.journal), "fast"]
        return HelperClient(PipeLink(command))

    def pace(self, pace: Pace) -> None:
        self.paces.append(pace.duty)

    def heat(self, control: PowerControl, seconds: int = 60) -> PowerStatus:
        for _ in range(seconds):
            self.now_s += 1.0
            status = control.tick(Reading(temp_c=82.0, power_w=200.0, power_limit_w=self.limit_w()))
        return status

    def limit_w(self) -> float:
        return limit_w(self.hwmon)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    for control in bench.controls:
        control.close()


def test_limit_is_lowered_logged_and_restored(bench: Bench) -> None:
    """A warm device gets a lower limit, every change is in the log, and all is put back."""
    control = bench.start()
    status = bench.heat(control)
    assert status.limit_w == bench.limit_w() < 203.0
    assert status.action is not None
    assert status.action.code == "too_warm"
    first = bench.log.history()[0]
    assert (first.knob, first.result, first.before) == ("power_limit", "applied", 203.0)
    assert first.after == first.requested
    assert bench.log.pending()
    results = control.close()
    assert [r.result for r in results] == ["restored"]
    assert bench.limit_w() == 203.0
    assert not bench.log.pending()
    assert (bench.logs / "power.jsonl").read_bytes().count(b"\n") == len(bench.log.history())


def work(bench: Bench, control: PowerControl, seconds: int) -> Plant:
    """Let a simulated laptop run under ``control``, cold at first."""
    plant = Plant(LAPTOP_4060, 22.0)
    control.tick(msgspec.structs.replace(plant.reading(), active=False))
    for _ in range(seconds):
        plant.advance("decode", bench.paces[-1] if bench.paces else 1.0)
        bench.now_s += 1.0
        control.tick(plant.reading())
    return plant


def test_the_next_session_begins_where_this_one_ended(bench: Bench) -> None:
    """What held the temperature is on disk, also when the program is killed, and is begun with."""
    coolers = Coolers(bench.logs)
    first = bench.start(has_helper=False, coolers=coolers)
    work(bench, first, 5400)
    assert (bench.logs / FILE).is_file()
    held = bench.paces[-1]
    first.close()
    second = bench.start(has_helper=False, coolers=Coolers(bench.logs))
    bench.paces.clear()
    work(bench, second, 30)
    assert bench.paces == [pytest.approx(held, rel=0.06)]
    assert bench.log.history()[-1].reason.code == "as_before"


def test_a_helper_that_comes_late_goes_on_with_what_was_seen(bench: Bench) -> None:
    """A password given after minutes: the warm device is not taken for a warm room."""
    early = bench.start(has_helper=False)
    work(bench, early, 300)
    late = bench.start(has_helper=False)
    late.learn_from(early.cooling)
    late.tick(Reading(temp_c=70.0, power_w=90.0, active=True))
    assert late.cooling.room_c == 22.0


def test_one_click_restores_and_stays(bench: Bench) -> None:
    """After the user's restore nothing is set again until they say so."""
    control = bench.start()
    bench.heat(control)
    control.restore()
    assert bench.limit_w() == 203.0
    bench.heat(control)
    assert bench.limit_w() == 203.0
    control.resume()
    bench.heat(control)
    assert bench.limit_w() < 203.0


def test_without_a_helper_it_paces(bench: Bench) -> None:
    """No rights, no helper: the engine works less, and nothing is written."""
    control = bench.start(has_helper=False)
    status = bench.heat(control)
    assert status.duty < 1.0
    assert bench.paces
    assert not status.has_helper
    assert bench.limit_w() == 203.0
    control.close()
    assert bench.paces[-1] == 1.0


def test_a_device_that_is_gone_holds_nobody_back(bench: Bench) -> None:
    """Paced and then lost: the pace ends with it, so other devices are not slowed down for it."""
    control = bench.start(has_helper=False)
    bench.heat(control)
    assert bench.paces[-1] < 1.0
    bench.now_s += 1.0
    status = control.tick(Reading(lost=True))
    assert bench.paces[-1] == status.duty == 1.0


def test_killed_helper_means_pacing_and_a_pending_restore(bench: Bench) -> None:
    """The helper dies: pacing goes on, the mark stays, and the next helper puts it back."""
    control = bench.start()
    bench.heat(control)
    assert bench.client is not None
    link = bench.client._link
    assert isinstance(link, PipeLink)
    link._process.kill()
    status = bench.heat(control, 120)
    assert not status.has_helper
    assert status.duty < 1.0
    assert "helper_gone" in {note.code for note in status.notes}
    control.close()
    assert bench.log.pending()
    assert bench.limit_w() < 203.0
    assert [r.result for r in restore_pending(bench.log, bench.helper)] == ["restored"]
    assert bench.limit_w() == 203.0
    assert not bench.log.pending()


def test_helper_of_somebody_else_refuses(bench: Bench) -> None:
    """A second RigTune is told that the device is taken."""
    bench.start()
    with pytest.raises(EnvironmentProblem) as problem:
        bench.start()
    assert problem.value.info.code == "helper_refused"


def test_ended_helper_is_noticed(bench: Bench) -> None:
    """Asking a helper that has ended is an error of its own, not a hang."""
    bench.start()
    assert bench.client is not None
    bench.client.end()
    with pytest.raises(HelperGone):
        bench.client.ask(KeepAlive())


def test_start_with_a_helper_or_without(bench: Bench) -> None:
    """With a helper its ranges count, a bad cap is refused; without one it paces, and says why."""

    def missing() -> HelperClient:
        raise EnvironmentProblem("helper_not_installed", "The power helper is not installed.")

    wish = Wish(cap_w=150.0)
    for use_helper, starter, code in (
        (True, bench.helper, None),
        (True, missing, "helper_not_installed"),
        (False, missing, None),
    ):
        control, problem = start_control(
            INFO, wish, set_pace=bench.pace, use_helper=use_helper, log=bench.log, helper=starter
        )
        assert (problem.code if problem else None) == code
        status = control.tick(Reading(temp_c=50.0, power_w=100.0, power_limit_w=bench.limit_w()))
        assert status.limit_w == (150.0 if code is None and use_helper else None)
        control.close()
        assert bench.limit_w() == 203.0
    with pytest.raises(UsageProblem):
        start_control(
            INFO, Wish(cap_w=90.0), set_pace=bench.pace, use_helper=True, log=bench.log,
            helper=bench.helper,
        )  # fmt: skip


def test_program_that_is_no_helper(bench: Bench) -> None:
    """Something that ends at once is reported as a helper that did not start."""
    client = HelperClient(PipeLink([sys.executable, "-c", "raise SystemExit(126)"]))
    with pytest.raises(EnvironmentProblem) as problem:
        client.begin(AMD_PCI)
    assert problem.value.info.code == "helper_dismissed"


def test_full_disk_means_no_control(bench: Bench) -> None:
    """Without the mark on disk nothing is controlled."""
    bench.log._folder = bench.logs / "gone"
    with pytest.raises(EnvironmentProblem):
        bench.start()
    assert bench.client is not None
    bench.client.end()
    assert bench.limit_w() == 203.0


def test_pending_of_another_boot_is_forgotten(bench: Bench) -> None:
    """A restart of the machine has restored everything."""
    text = '{"key":"k","pci_id":"0000:03:00.0","boot_id":"other","since_utc":""}'
    (bench.logs / "power-pending-0000-03-00.0.json").write_text(text)
    assert not bench.log.pending()
    assert not (bench.logs / "power-pending-0000-03-00.0.json").exists()


def test_log_does_not_grow_for_ever(bench: Bench) -> None:
    """A long log is set aside once."""
    path = bench.logs / "power.jsonl"
    path.write_bytes(b"x" * (1 << 20) + b"y")
    control = bench.start(has_helper=False)
    bench.heat(control)
    assert path.stat().st_size < 10_000
    assert (bench.logs / "power.old.jsonl").exists()


def test_another_wish_is_no_fall_of_the_cooler(bench: Bench) -> None:
    """Quiet is slower than full because it was asked for, not because heat took the speed."""
    control = bench.start(has_helper=False)
    control.set_wish(Wish(mode=Mode.FULL))
    plant = Plant(LAPTOP_4060, 15.0)
    said: set[str] = set()
    for second in range(1250):
        if second == 700:
            control.set_wish(Wish(mode=Mode.QUIET))
        plant.advance("decode", bench.paces[-1] if bench.paces else 1.0)
        bench.now_s += 1.0
        said.update(note.code for note in control.tick(plant.reading()).notes)
    assert bench.paces[-1] < 0.7
    assert "slower" not in said


def test_a_glance_at_another_mode_does_not_replace_what_hours_have_taught(bench: Bench) -> None:
    """Full for two hours and quiet for seconds: nothing was seen of a fan that turns slowly."""
    coolers = Coolers(bench.logs)
    quiet = bench.start(has_helper=False, coolers=coolers)
    quiet.set_wish(Wish(mode=Mode.QUIET))
    work(bench, quiet, 7200)
    quiet.close()
    known = coolers.find(INFO.key, 61.0, "balanced")
    assert known is not None
    full = bench.start(has_helper=False, coolers=coolers)
    full.set_wish(Wish(mode=Mode.FULL))
    bench.paces.clear()
    plant = work(bench, full, 7200)
    full.set_wish(Wish(mode=Mode.QUIET))
    for _ in range(30):
        plant.advance("decode", bench.paces[-1] if bench.paces else 1.0)
        bench.now_s += 1.0
        full.tick(plant.reading())
    full.close()
    again = coolers.find(INFO.key, 61.0, "balanced")
    assert again is not None
    assert again.c_per_w == pytest.approx(known.c_per_w, rel=0.05)
    hot = coolers.find(INFO.key, 79.0, "balanced")
    assert hot is not None
    assert hot.target_c == 79.0
