"""A model loaded for chat must lie on the card that was asked for, or the user is told."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from app.domain.events import ServerStarted
from app.domain.settings import Settings
from app.domain.trial import TelemetryWindow
from app.domain.units import GIB
from app.rig.lease import Lease
from app.session.landing import Landing
from app.session.serving import Server
from app.session.talk import Chat
from app.telemetry import Window
from tests.fakes import situations as s
from tests.fakes.faulty_worker import faulty
from tests.fakes.records import a_model

ON_GPU = Settings(n_gpu_layers=9, n_ctx=512, devices=("CUDA0",))
TWO = s.machine(s.gpu(), s.gpu(2, s.device("CUDA1"), name=s.OTHER))
NEED = {"CUDA0": 4 * GIB}


def landing(growth: Mapping[str, int] | None, needed: Mapping[str, int] = NEED) -> Landing:
    """A load below telemetry that saw ``growth``."""

    @contextlib.contextmanager
    def opened() -> Iterator[Window]:
        window = Window()
        yield window
        if growth is not None:
            window.result = TelemetryWindow(n_samples=3, vram_growth_bytes=dict(growth))

    return Landing(TWO, needed, opened)


def notes_of(seen: Landing, lock: Path) -> tuple[str, ...]:
    """Load a chat in a real child and return its notes."""
    with Chat(
        a_model(), ON_GPU, faulty(), None, ("first",), lease=Lease("chat", lock), landing=seen
    ) as chat:
        return chat.notes


def test_a_chat_on_another_card_is_told(tmp_path: Path) -> None:
    """Memory rose on the other card: the user must know before relying on anything."""
    notes = notes_of(landing({"GPU-1": 0, "GPU-2": 4 * GIB}), tmp_path / "lock")
    assert notes[0] == "first"
    assert s.OTHER in notes[1]


def test_a_chat_whose_card_stayed_empty_is_told(tmp_path: Path) -> None:
    """The engine says gigabytes lie there, and no memory rose."""
    notes = notes_of(landing({"GPU-1": 0}), tmp_path / "lock")
    assert s.CARD in notes[1]


@pytest.mark.parametrize("growth", [{"GPU-1": 4 * GIB}, {}, None])
def test_a_chat_where_it_belongs_says_nothing(
    growth: dict[str, int] | None, tmp_path: Path
) -> None:
    """Nor does one of which no probe can tell."""
    assert notes_of(landing(growth), tmp_path / "lock") == ("first",)


def test_a_chat_in_ram_is_not_watched(tmp_path: Path) -> None:
    """Without layers on a card nothing is looked for, whoever else takes memory meanwhile."""
    assert notes_of(landing({"GPU-2": 4 * GIB}, {}), tmp_path / "lock") == ("first",)


def test_a_server_on_another_card_is_told_when_it_is_up(tmp_path: Path) -> None:
    """The notes are complete when the address is announced, and the server goes on."""
    server = Server(
        a_model(), ON_GPU, faulty(), None, ("first",), lease=Lease("serve", tmp_path / "lock"),
        landing=landing({"GPU-1": 0, "GPU-2": 4 * GIB}),
    )  # fmt: skip
    seen = []
    for event in server.run():
        if isinstance(event, ServerStarted):
            seen = list(server.notes)
    assert seen[0] == "first"
    assert s.OTHER in seen[1]
