"""Looks after a loaded model while somebody types: idle time, other programs, heat and power."""

import os
import threading
from types import TracebackType
from typing import Self

from app.chat.in_use import Rest, devices_in_use, draw_w, rest_of
from app.chat.neighbours import Neighbours, VramWanted
from app.cli.output import progress_console
from app.cli.power_options import News
from app.domain.machine import GpuSample
from app.domain.units import format_bytes, significant
from app.machine import merge_samples
from app.session import Chat, Session

LOOK_S = 10.0


class ChatWatch:
    """Says what the user should know, between the lines of the conversation.

    A context manager: inside it a thread looks every ``LOOK_S``.
    """

    def __init__(self, session: Session, chat: Chat) -> None:
        """Prepare; nothing is read before the first look."""
        self._session, self._chat = session, chat
        self._news = News(chat.power)
        self._neighbours = Neighbours(())
        self._pid: int | None = None
        self._draw_w: float | None = None
        self._is_resting = False
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Begin to look."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Look no more."""
        self._is_over.set()
        self._thread.join()

    def look(self) -> None:
        """Unload a model nobody asks; say how its devices rest, and who wants their memory."""
        if self._chat.unload_if_idle():
            self._is_resting = True
            text = "the model was unloaded: no question for a while; the next one loads it"
            _say(text, "dim")
        elif self._chat.pid is None and self._is_resting:
            self._is_resting = False
            _say(rest_text(rest_of(self._draw_w, self._samples())), "dim")
        elif self._chat.pid is not None:
            self._is_resting = False
            self._look_around(self._chat.pid)
        self._news.tell()

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            self.look()

    def _look_around(self, pid: int) -> None:
        if pid != self._pid:
            self._pid, self._neighbours = pid, Neighbours({os.getpid(), pid})
        samples = self._samples()
        self._draw_w = draw_w(samples)
        for sample in samples:
            if wanted := self._neighbours.look(sample):
                _say(wanted_text(wanted), "yellow")

    def _samples(self) -> tuple[GpuSample, ...]:
        """Return a new reading of each device in use; what a hanging probe said is not new."""
        used = devices_in_use(self._session.machine(), self._chat.settings)
        if not used:
            return ()
        telemetry = self._session.telemetry()
        telemetry.sample_now()
        fresh = ([s for s in telemetry.latest(k) if not telemetry.is_stale(s)] for k in used)
        return tuple(sample for samples in fresh if (sample := merge_samples(samples)))


def wanted_text(wanted: VramWanted) -> str:
    """Return who took graphics memory and what is left."""
    who, free = wanted.name or "another program", format_bytes(wanted.free_bytes)
    return f"{who} took graphics memory, {free} are left: answers may get slow"


def rest_text(rest: Rest) -> str:
    """Return how the devices rest; empty where nothing can be read."""
    if rest.is_asleep:
        return "the GPU sleeps"
    if rest.now_w is None:
        return ""
    text = f"draw now {significant(rest.now_w)} W"
    before_w = rest.before_w
    return text if before_w is None else f"{text}, {significant(before_w)} W with the model loaded"


def _say(text: str, style: str) -> None:
    if text:
        progress_console().print(f"\n({text})", style=style, markup=False)
