"""What a chat in the terminal says by itself, by the readings of a recorded card."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from app.chat.in_use import Rest
from app.cli.chat_watch import ChatWatch, rest_text
from app.domain.settings import Settings
from app.rig.lease import Lease
from app.session import Chat, Session
from app.session.talk import IDLE_S
from app.telemetry import sampler
from probes import nvidia_card
from tests.fakes.faulty_worker import faulty
from tests.fakes.living_card import DESKTOP, LAPTOP, LivingCard
from tests.fakes.records import a_model

MODEL = msgspec.structs.replace(a_model(), file_bytes=1000)
GAME = 777


class Seen:
    """A chat on the card, its watch, and the time."""

    def __init__(
        self,
        tmp_path: Path,
        devices: tuple[str, ...],
        *,
        n_gpu_layers: int = 4,
        card: str = DESKTOP,
    ) -> None:
        """Load the model; nothing was looked at yet."""
        self.now_s = 0.0
        self.card = LivingCard(card)
        self.session = Session(self.card, replay=self.card.folder)
        settings = Settings(n_gpu_layers=n_gpu_layers, n_ctx=512, n_threads=1, devices=devices)
        self.chat = Chat(
            MODEL, settings, faulty(), None, (),
            clock_s=lambda: self.now_s, lease=Lease("chat", tmp_path / "lock"),
        )  # fmt: skip
        self.watch = ChatWatch(self.session, self.chat)
        list(self.chat.load())
        # the worker takes settings of its own; where they lie is what counts here
        self.chat.settings = settings

    def look(self) -> None:
        """Look at what is true now, however slow the machine is."""
        assert self.session.telemetry().sample_now(timeout_s=60)
        self.watch.look()


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(nvidia_card, "SLOW_NS", 0)  # programs are read every time
    opened = Seen(tmp_path, ("CUDA0",))
    with closing(opened.session), closing(opened.chat):
        yield opened


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was said since the last time, on one line."""
    return " ".join(capsys.readouterr().err.split())


def test_program_that_wants_the_memory_is_named(
    seen: Seen, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the desktop nor our own growth is; a game that leaves little is, once each time."""
    seen.look()
    seen.card.hold(seen.chat.pid or 0, "rigtune", 12_000)
    seen.look()
    assert said(capsys) == ""
    seen.card.hold(GAME, "game", 1500)
    seen.look()
    assert said(capsys) == "", "there is room for both"
    seen.card.hold(GAME, "game", 2600)
    seen.look()
    assert said(capsys) == "(game took graphics memory, 198 MiB are left: answers may get slow)"
    seen.look()
    assert said(capsys) == ""
    seen.card.hold(GAME, "game", 0)
    seen.look()
    seen.card.hold(GAME, "game", 2600)
    seen.look()
    assert "game took graphics memory" in said(capsys)


def test_card_at_rest_is_told_after_the_idle_time(
    seen: Seen, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model goes, the draw falls, and both are said; nothing is read after that."""
    seen.card.draw(36.2)
    seen.look()
    seen.now_s += IDLE_S
    seen.look()
    assert "the model was unloaded" in said(capsys)
    assert seen.chat.pid is None
    seen.card.draw(9.64)
    seen.look()
    assert said(capsys) == "(draw now 9.64 W, 36.2 W with the model loaded)"
    seen.look()
    assert said(capsys) == ""


def test_laptop_card_is_let_go_after_the_idle_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open driver handle alone keeps such a card from sleeping."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sampler, "REST_AFTER_S", 0.01)
    seen = Seen(tmp_path, ("CUDA0",), card=LAPTOP)
    with closing(seen.session), closing(seen.chat):
        seen.look()
        seen.now_s += IDLE_S
        seen.look()
        seen.look()
        assert seen.card.is_let_go.wait(60)
        seen.watch.look()  # it opens nothing again
        assert seen.card.is_let_go.is_set()


def test_model_on_the_cpu_watches_no_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A game on a card that the chat does not use makes no answer slow."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    seen = Seen(tmp_path, (), n_gpu_layers=0)
    with closing(seen.session), closing(seen.chat):
        seen.look()
        seen.card.hold(GAME, "game", 14_500)
        seen.look()
        seen.now_s += IDLE_S
        seen.look()
        seen.look()
        assert said(capsys) == (
            "(the model was unloaded: no question for a while; the next one loads it)"
        )


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        (Rest(before_w=30.0, now_w=None, is_asleep=True), "the GPU sleeps"),
        (Rest(before_w=30.0, now_w=None, is_asleep=False), ""),
        (Rest(before_w=None, now_w=8.0, is_asleep=False), "draw now 8.00 W"),
    ],
)
def test_only_what_was_read_is_said(rest: Rest, text: str) -> None:
    """No figure is made up."""
    assert rest_text(rest) == text
