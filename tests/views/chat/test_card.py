"""What the window says of a recorded card: who wants its memory, and how it rests."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.session import Session
from app.telemetry import Telemetry
from probes import nvidia_card
from tests.fakes.gui_guard import GuiGuard
from tests.fakes.living_card import LivingCard
from tests.fakes.session import FakeSession
from tests.views.chat.conftest import User
from views.chat import desk
from views.chat.page import ChatPage

GAME = 777


class CardSession(FakeSession):
    """A made-up chat on a card that is read through the real probe and telemetry."""

    def __init__(self, card: LivingCard) -> None:
        """Read the machine once."""
        self.card = card
        self.real = Session(card, replay=card.folder)
        super().__init__(self.real.machine())

    @override
    def telemetry(self, interval_s: float | None = None) -> Telemetry:  # type: ignore[override]
        """Return the real one."""
        return self.real.telemetry(interval_s)

    def read(self) -> None:
        """Take a reading now."""
        assert self.real.telemetry().sample_now(timeout_s=60)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CardSession]:
    """Return a session on the card, whose every reading is a whole one and is looked at soon."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(nvidia_card, "SLOW_NS", 0)
    monkeypatch.setattr(desk, "LOOK_S", 0.01)
    monkeypatch.setattr(desk, "REST_LOOKS", 1 << 30)  # however slow the machine is
    made = CardSession(LivingCard())
    with closing(made.real):
        yield made


def test_program_that_wants_the_memory_is_said(
    chat: ChatPage, session: CardSession, user: User, qtbot: QtBot, guard: GuiGuard
) -> None:
    """Who took it and what is left stand above the conversation."""
    with guard.paused():
        session.read()
    user.say("one")
    desk_now = chat.staff.desk
    assert desk_now is not None
    watch = desk_now._seat.watch
    assert watch is not None
    # how things stood before is known once a reading was looked at
    qtbot.waitUntil(lambda: bool(watch._neighbours._before), timeout=20_000)
    session.card.hold(GAME, "game", 14_600)
    with guard.paused():
        session.read()
    said = "game took graphics memory; 198\u00a0MiB are left. Answers may get slow."
    qtbot.waitUntil(lambda: chat.banner.text == said, timeout=20_000)


def test_card_at_rest_is_said_after_the_idle_time(
    chat: ChatPage, session: CardSession, user: User, qtbot: QtBot, guard: GuiGuard
) -> None:
    """The falling draw is told beside that the model was unloaded."""
    session.card.draw(36.2)
    with guard.paused():
        session.read()
    user.say("one")
    qtbot.waitUntil(lambda: "36.2\u00a0W" in chat.meter.speed.text(), timeout=20_000)
    session.idle_left_s = 0.0
    qtbot.waitUntil(lambda: session.n_unloads == 1, timeout=20_000)
    session.card.draw(9.64)
    with guard.paused():
        session.read()
    said = "Draw now 9.64 W, 36.2 W with the model loaded."
    qtbot.waitUntil(lambda: said in chat.meter.speed.text(), timeout=20_000)
    assert "Nobody asked for a while" in chat.meter.speed.text()
    session.idle_left_s = 900.0
    user.say("two")
    assert "Draw now" not in chat.meter.speed.text()
