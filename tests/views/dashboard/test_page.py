"""The dashboard: real readings, sleeping cards, no card at all."""

import msgspec
from pytestqt.qtbot import QtBot

from app.domain.errors import EnvironmentProblem
from app.domain.machine import Machine
from tests.fakes import window_data as data
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.dashboard.gpu_card import GpuCard, gpu_facts
from views.dashboard.host_card import HostCard
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
