"""The dashboard: real readings, sleeping cards, no card at all."""

import time
from pathlib import Path

import msgspec
from pytestqt.qtbot import QtBot

from app.domain.errors import EnvironmentProblem
from app.domain.machine import Machine, PowerState
from probes.reading import Absence, gpu_sample
from tests.fakes import window_data as data
from tests.fakes.gui_guard import GuiGuard
from tests.fakes.odd_machines import LISTED, seen, sixteen
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.dashboard.gpu_card import GpuCard, gpu_facts, unmatched_text
from views.dashboard.host_card import HostCard, host_facts
from views.main_window import MainWindow


def card(window: MainWindow, index: int) -> GpuCard:
    """Return a GPU's card."""
    found = window.dashboard._cards_shown[index]
    assert isinstance(found, GpuCard)
    return found


def test_readings_arrive_while_the_page_shows(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """A new reading must change the card, without a press of anything."""
    strip = card(window, 0)._strips["busy_pct"]
    old = session.fake_telemetry.samples[-1]
    session.fake_telemetry.push(msgspec.structs.replace(old, busy_pct=97.0))
    qtbot.waitUntil(lambda: strip._value.text() == "97\u00a0%")


def test_capability_that_is_not_there_is_not_shown(window: MainWindow) -> None:
    """A quantity without any reading must not take room."""
    shown = {name for name, strip in card(window, 0)._strips.items() if not strip.isHidden()}
    assert "busy_pct" in shown
    assert "pcie_rx_bytes_s" not in shown


def test_sleeping_gpu_says_so(window: MainWindow) -> None:
    """A sleeping card must be called asleep and show no curves."""
    asleep = card(window, 1)
    assert asleep.pill.text == "asleep"
    assert asleep._stack.isHidden()
    assert "does not wake it" in asleep._note.text()


def test_memory_names_its_users(window: MainWindow) -> None:
    """The card must say who holds its memory."""
    assert "llama worker 3.81\u00a0GiB" in card(window, 0)._memory._text.text()


def test_table_says_what_the_curves_say(window: MainWindow) -> None:
    """The table twin must hold a row per curve, with now, lowest, mean and highest."""
    window.dashboard._as_table.click()
    table = card(window, 0).table
    assert table.isVisible()
    names = [row[0] for row in table.rows.rows]
    assert names[:2] == ["Busy time", "VRAM in use"]
    assert all("—" not in row for row in table.rows.rows)


def test_hidden_page_draws_nothing(window: MainWindow, session: FakeSession, qtbot: QtBot) -> None:
    """While another page shows, readings must not reach the dashboard."""
    window.open_page("advice")
    qtbot.waitUntil(window.on_demand.pages["advice"].isVisible)
    with qtbot.assertNotEmitted(window.feed.updated, wait=30):
        session.fake_telemetry.push()


def test_machine_without_gpu(open_window: OpenWindow) -> None:
    """No GPU must be a state with a sentence, and the CPU's card must be there."""
    window = open_window(FakeSession(data.BARE_MACHINE))
    assert "No GPU found" in window.dashboard._banner.text
    assert isinstance(window.dashboard._cards_shown[0], HostCard)


def test_machine_that_cannot_be_read(open_window: OpenWindow, qtbot: QtBot) -> None:
    """A failing probe or engine must be said on the page."""
    session = FakeSession()

    def fail(*, refresh: bool = False) -> Machine:
        raise EnvironmentProblem("no_worker", "The engine does not start.", "Run the doctor.")

    session.machine = fail  # type: ignore[method-assign]
    window = open_window(session)
    assert "Run the doctor." in window.dashboard._banner.text


def test_facts_name_link_and_display() -> None:
    """The line below the name must say how the card is connected."""
    facts = gpu_facts(data.DISCRETE)
    assert "PCIe 4 x8" in facts
    assert "engine: CUDA0" in facts
    assert "drives the display" in gpu_facts(data.ASLEEP)


def test_pause_holds_the_curves_and_goes_on(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """While paused a new reading must not show; afterwards it must."""
    page = window.dashboard
    strip = card(window, 0)._strips["busy_pct"]
    page._pause.click()
    before = strip._value.text()
    old = session.fake_telemetry.samples[-1]
    later = msgspec.structs.replace(old, busy_pct=97.0, t_ns=time.perf_counter_ns())
    session.fake_telemetry.push(later)
    qtbot.waitUntil(lambda: not window.feed._is_told)
    page._window.setCurrentIndex(1)
    assert strip._value.text() == before
    page._pause.click()
    assert strip._value.text() == "97\u00a0%"


def test_readings_go_to_a_file(
    window: MainWindow, guard: GuiGuard, tmp_path: Path, qtbot: QtBot
) -> None:
    """Every quantity must be written with its unit, whatever the screen shows."""
    target = tmp_path / "werte ü.csv"
    window.dashboard.export_to(str(target))
    qtbot.waitUntil(lambda: "Written" in window.dashboard._banner.text)
    with guard.paused():
        lines = target.read_text("utf-8").splitlines()
    assert lines[0] == "device,quantity,unit,seconds_before_export,value"
    assert sum("power_w,W" in line for line in lines) == 60
    window.dashboard.export_to(str(target / "x.csv"))
    qtbot.waitUntil(lambda: "cannot be written" in window.dashboard._banner.text)


def test_programs_are_listed_largest_first(window: MainWindow, qtbot: QtBot) -> None:
    """Who holds memory must be a table, too."""
    table = card(window, 0).processes
    assert not table.isVisible()
    window.dashboard._processes.click()
    assert [row[0] for row in table.rows.rows] == ["llama worker", "Xorg"]


def test_throttling_marks_the_clock(window: MainWindow, session: FakeSession, qtbot: QtBot) -> None:
    """A slowed span must be a band in the clock's strip, and the state must say why."""
    telemetry = session.fake_telemetry
    hot = msgspec.structs.replace(telemetry.samples[-1], throttle=("hw_thermal",))
    telemetry.samples[-5:] = [
        msgspec.structs.replace(s, throttle=("hw_thermal",)) for s in telemetry.samples[-5:]
    ]
    telemetry.push(msgspec.structs.replace(hot, t_ns=time.perf_counter_ns()))
    strip = card(window, 0)._strips["clock_mhz"]
    qtbot.waitUntil(lambda: "slowed down" in strip.accessibleName())
    assert card(window, 0).pill.text == "throttled: heat, hardware limit"


def test_memory_map_tells_parts_while_a_model_is_loaded(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """The parts of our own model must stand beside what others hold."""
    window.dashboard.show_loaded(data.memory(28, 4096).devices)
    window.dashboard._refresh()
    memory = card(window, 0)._memory
    text = memory.accessibleName()
    assert not memory._legend.isHidden()
    for word in ("Weights", "KV cache", "Compute buffers"):
        assert word in text
    window.dashboard.show_loaded(())
    window.dashboard._refresh()
    assert "Weights" not in memory.accessibleName()
    assert memory._legend.isHidden()


def test_narrowed_link_is_said(window: MainWindow, session: FakeSession, qtbot: QtBot) -> None:
    """A link slower than the slot allows must be named."""
    telemetry = session.fake_telemetry
    telemetry.push(msgspec.structs.replace(telemetry.samples[-1], pcie_gen=1, pcie_width=8))
    qtbot.waitUntil(lambda: "link now 1 x8" in card(window, 0)._facts.text())


def test_fan_and_time_held_back_are_shown(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """The fan stands with the facts; how long clocks were held back is a curve."""
    telemetry = session.fake_telemetry
    limited = {"sw_power_cap": 40.0, "sw_thermal": 5.0}
    newest = msgspec.structs.replace(
        telemetry.samples[-1], fan_pct=55.0, fan_rpm=1450.0, limited_pct=limited
    )
    telemetry.push(newest)
    qtbot.waitUntil(lambda: "fan 55 %, 1450 rpm" in card(window, 0)._facts.text())
    strip = card(window, 0)._strips["limited_most_pct"]
    qtbot.waitUntil(lambda: strip._value.text() == "40\u00a0%")


def test_load_of_programs_is_listed(window: MainWindow, session: FakeSession, qtbot: QtBot) -> None:
    """A program's share of the GPU's time stands beside its memory, unknown as a dash."""
    window.dashboard._processes.click()
    telemetry = session.fake_telemetry
    programs = telemetry.samples[-1].processes
    assert programs is not None
    busy = (msgspec.structs.replace(programs[0], busy_pct=61.4), *programs[1:])
    telemetry.push(msgspec.structs.replace(telemetry.samples[-1], processes=busy))
    table = card(window, 0).processes
    qtbot.waitUntil(lambda: {row[4] for row in table.rows.rows} == {"61 %", "—"})


def test_sixteen_cards_have_room(open_window: OpenWindow, qtbot: QtBot) -> None:
    """Each card of a server has its place on the page, and the page scrolls."""
    machine = seen(sixteen(), LISTED).machine
    window = open_window(FakeSession(machine))
    qtbot.waitUntil(lambda: len(window.dashboard._cards_shown) == 17)
    shown = [c for c in window.dashboard._cards_shown if isinstance(c, GpuCard)]
    assert len({c.key for c in shown}) == 16
    assert all(c.isVisible() and c.height() >= c.minimumSizeHint().height() for c in shown)
    tops = sorted(c.mapTo(window, c.rect().topLeft()).y() for c in shown)
    assert len(set(tops)) == 16


def test_card_that_vanishes_between_readings_is_called_gone(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """No old number stands for a card that was unplugged; back again it is read again."""
    telemetry = session.fake_telemetry
    before = telemetry.samples[-1]
    lost = gpu_sample(before.key, before.t_ns, PowerState.UNKNOWN, {}, default=Absence.LOST)
    telemetry.push(msgspec.structs.replace(lost, t_ns=time.perf_counter_ns()))
    gone = card(window, 0)
    qtbot.waitUntil(lambda: gone.pill.text == "not answering")
    assert "device is gone" in gone._note.text()
    assert gone._strips["temp_c"]._value.text() == "—"
    telemetry.push(msgspec.structs.replace(before, t_ns=time.perf_counter_ns()))
    qtbot.waitUntil(lambda: gone.pill.text != "not answering")
    assert "device is gone" not in gone._note.text()


def test_a_gpu_beside_a_sleeping_card_is_not_called_unused(open_window: OpenWindow) -> None:
    """While a card sleeps the engine is not asked: nothing is known of what it can use."""
    unasked = msgspec.structs.replace(
        data.MACHINE,
        engine=None,
        gpus=tuple(msgspec.structs.replace(gpu, engine=()) for gpu in data.MACHINE.gpus),
    )
    assert card(open_window(FakeSession(unasked)), 0)._note.text() == ""
    unlisted = msgspec.structs.replace(unasked, engine=data.MACHINE.engine)
    # Its driver, or the engine's backend, may be what is missing: the advice says which.
    assert "does not list" in card(open_window(FakeSession(unlisted)), 0)._note.text()


def test_impossible_reading_is_a_dash_with_its_reason(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """What a driver tells wrongly, or keeps to others, has its place; what it lacks has none."""
    shown = card(window, 0)
    before = session.fake_telemetry.samples[-1]
    absurd = msgspec.structs.replace(
        before,
        t_ns=time.perf_counter_ns(),
        fan_pct=None, temp_memory_c=None,
        shared_used_bytes=None,
        missing={"shared_used_bytes": "implausible", "limited_pct": "not_supported"},
    )  # fmt: skip
    assert not shown._strips["shared_used_bytes"].isVisible()
    session.fake_telemetry.push(absurd)
    window.dashboard._refresh()
    strip = shown._strips["shared_used_bytes"]
    qtbot.waitUntil(strip.isVisible)
    assert strip._value.text() == "—"
    assert "impossible" in strip._value.toolTip() + strip.accessibleName()
    assert not shown._strips["limited_most_pct"].isVisible()


def test_reading_that_does_not_come_is_not_shown_as_now(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """While a driver hangs the numbers give way to a dash with the reason, and come back."""
    telemetry = session.fake_telemetry
    strip = card(window, 0)._strips["temp_c"]
    qtbot.waitUntil(lambda: strip._value.text() not in {"", "—"})
    telemetry.is_stalled = True
    window.dashboard._refresh()
    assert strip._value.text() == "—"
    assert "does not answer in time" in strip._value.toolTip() + strip.accessibleName()
    assert card(window, 0).pill.text == "not answering"
    host = window.dashboard._cards_shown[-1]
    assert isinstance(host, HostCard)
    assert host._strips["cpu_busy_pct"]._value.text() == "—"
    telemetry.is_stalled = False
    window.dashboard._refresh()
    assert strip._value.text() != "—"


def test_one_core_is_singular() -> None:
    """The line below the processor's name is in grammar."""
    host = msgspec.structs.replace(data.HOST, cores_physical=1, cores_logical=2)
    assert host_facts(host).startswith("1 core · 2 threads")


def test_gpu_without_readings_says_why_in_words() -> None:
    """Why the engine's device has no readings must not be shown as a code."""
    for code in ("no_probe_sees_it", "ambiguous_name", "ambiguous_instance"):
        assert " " in unmatched_text(code)
    assert unmatched_text(None) == ""
