"""Settings count at once and are kept."""

import pytest
from pytestqt.qtbot import QtBot

from app.domain.sweep import Goal
from app.domain.units import MIB
from app.store.preferences import load_preferences
from tests.fakes.gui_guard import GuiGuard
from tests.fakes.session import FakeSession
from views.late_pages import LatePages
from views.main_window import MainWindow
from views.settings.page import SettingsPage
from views.units import use_units


@pytest.fixture
def page(window: MainWindow) -> SettingsPage:
    """Return the page, opened as the user does."""
    window.open_page("settings")
    found = window.on_demand.pages["settings"]
    assert isinstance(found, SettingsPage)
    return found


def choose(page: SettingsPage, field: str, value: object) -> None:
    """Choose a value as the user does."""
    box = page.choices[field]
    box.setCurrentIndex(box.findData(value))


def test_look_changes_at_once_and_is_kept(
    page: SettingsPage, window: MainWindow, guard: GuiGuard, qtbot: QtBot
) -> None:
    """Dark and high contrast must show at once and be there at the next start."""
    choose(page, "theme", "dark")
    choose(page, "contrast", "high")
    theme = window._kit.theme
    qtbot.waitUntil(lambda: theme.is_dark and theme.colors.window == theme.colors.surface)
    qtbot.waitUntil(lambda: not window.jobs.running() and not theme._slices.is_busy)
    with guard.paused():
        stored, _ = load_preferences()
    assert (stored.theme, stored.contrast) == ("dark", "high")


def test_readings_take_the_new_pace(
    page: SettingsPage, session: FakeSession, window: MainWindow, qtbot: QtBot
) -> None:
    """The pace of live readings must change while the window is open."""
    assert session.fake_telemetry.interval_s == 1.0
    choose(page, "interval_s", 5.0)
    assert session.fake_telemetry.interval_s == 5.0


def test_headroom_is_what_one_click_leaves_free(
    page: SettingsPage, late: LatePages, session: FakeSession, qtbot: QtBot
) -> None:
    """The preferred headroom must be in the request of a search that asks nothing."""
    page.headroom.setValue(640)
    late.wizard.start_quick("demo")
    qtbot.waitUntil(lambda: late.wizard.step == "result")
    assert session.requests[0][1].headroom_bytes == 640 * MIB


def test_folders_are_looked_into(
    page: SettingsPage, late: LatePages, session: FakeSession, window: MainWindow, qtbot: QtBot
) -> None:
    """A folder added must be asked for with the next list, one removed no more."""
    page.folders.add_folder("/modelle/ä b")
    page.folders.add_folder("/modelle/ä b")
    window.open_page("tune")
    qtbot.waitUntil(lambda: session.folders == ("/modelle/ä b",))
    page.folders.list.setCurrentRow(0)
    page.folders.remove.click()
    assert window._kit.options.value.model_folders == ()


def test_expert_sees_more(window: MainWindow, page: SettingsPage, qtbot: QtBot) -> None:
    """Expert must bring llama.cpp's names and options; the form must ask the same otherwise."""
    assert window.late is not None
    assert window.late.wizard.goal_step.constraints.q8.isHidden()
    choose(page, "level", "expert")
    qtbot.waitUntil(
        lambda: (
            window.is_ready
            and not window._turns.is_busy
            and window.late is not None
            and not window.late.wizard.goal_step.constraints.q8.isHidden()
        )
    )
    qtbot.waitUntil(lambda: not window.jobs.running())
    assert window.late.wizard.goal_step.request().goal is Goal.CHAT


def test_units_are_those_preferred(window: MainWindow, page: SettingsPage, qtbot: QtBot) -> None:
    """Sizes and temperatures must be written in the chosen units everywhere."""
    try:
        choose(page, "memory_unit", "decimal")
        choose(page, "temperature_unit", "fahrenheit")
        dashboard = window.dashboard
        qtbot.waitUntil(lambda: window.dashboard is not dashboard and window.is_ready)
        qtbot.waitUntil(lambda: not window._turns.is_busy)
        window.open_page("dashboard")
        qtbot.waitUntil(lambda: window.dashboard.is_ready)
        card = window.dashboard._cards_shown[0]
        qtbot.waitUntil(lambda: "°F" in card._strips["temp_c"]._value.text())
        assert "GB" in card._strips["vram_used_bytes"]._value.text()
        qtbot.waitUntil(lambda: not window.jobs.running())
    finally:
        use_units(binary=True, celsius=True)


def test_change_waits_for_a_running_search(
    page: SettingsPage, window: MainWindow, late: LatePages, session: FakeSession, qtbot: QtBot
) -> None:
    """A change that builds the pages anew must not end what is measured."""
    session.gate.clear()
    late.wizard.start_quick("demo")
    qtbot.waitUntil(lambda: len(late.wizard.run_step._trials) == session.hold_at)
    choose(page, "level", "expert")
    qtbot.waitUntil(lambda: window.preferring.is_waiting)
    assert window.late is late
    session.gate.set()
    qtbot.waitUntil(lambda: window.late is not None and window.late is not late)
    qtbot.waitUntil(lambda: not window.jobs.running())


def test_own_files_are_named(page: SettingsPage, window: MainWindow, qtbot: QtBot) -> None:
    """Who has no file manager must read where RigTune keeps its files."""
    page.show_file("/home/x/rigtune")
    assert "/home/x/rigtune" in page.banner.text


def test_change_waits_for_an_answer_but_not_for_the_end_of_a_chat(
    window: MainWindow, late: LatePages, page: SettingsPage, session: FakeSession, qtbot: QtBot
) -> None:
    """A model stays loaded for a long time after its answer; the window must not wait for that."""
    session.gate.clear()
    late.chat.send("Hello")
    qtbot.waitUntil(
        lambda: "KV" in late.chat.transcript.turns[-1].view.content or bool(session.asked)
    )
    before = window.dashboard
    page.kit.options.change(level="expert")
    qtbot.waitUntil(lambda: not window.jobs.running("preferences"))
    assert window.preferring.is_waiting
    assert window.dashboard is before
    session.gate.set()
    qtbot.waitUntil(lambda: window.dashboard is not before and window.is_ready)
