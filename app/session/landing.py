"""Whether a model that is loaded for chat or serving lies on the card that was asked for."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeVar

from app.advice.rule import mib, name_of
from app.advice.text import render
from app.domain.machine import Machine
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.domain.trial import TelemetryWindow
from app.machine import placement, stayed_empty
from app.session.estimating import Scene, formula
from app.telemetry import Window

T = TypeVar("T")

OpenWindow = Callable[[], AbstractContextManager[Window]]


class Landing(NamedTuple):
    """What a load is checked against.

    Attributes:
        machine: The machine, engine included.
        needed: Engine device → bytes of weights that are to lie there; empty = none do.
        window: Opens a window of telemetry.
    """

    machine: Machine
    needed: Mapping[str, int]
    window: OpenWindow

    def watched(self, load: Iterator[T]) -> Generator[T, None, tuple[str, ...]]:
        """Pass a load on; return what is wrong with where its weights went, as sentences."""
        if not self.needed:
            yield from load
            return ()
        with self.window() as window:
            yield from load
            window.begin()
        return self.problems(window.result)

    def problems(self, seen: TelemetryWindow | None) -> tuple[str, ...]:
        """Return what is wrong by what the probes saw; nothing where they saw nothing."""
        growth = seen.vram_growth_bytes if seen is not None else {}
        names = tuple(self.needed)
        other, rise = placement(self.machine, names, growth)
        if other is not None:
            asked = ", ".join(names)
            return (_said("wrong_card", device=asked, gpu=name_of(other), rise_mib=mib(rise)),)
        empty = stayed_empty(self.machine, names, growth, self.needed)
        if empty is not None:
            gpu, held = empty
            return (_said("card_stayed_empty", gpu=name_of(gpu), need_mib=mib(held)),)
        return ()


def landing_of(spec: ModelSpec, settings: Settings, scene: Scene, window: OpenWindow) -> Landing:
    """Return what a load of ``spec`` is checked against: where the formula puts its weights."""
    needed: dict[str, int] = {}
    if settings.n_gpu_layers:
        found = formula(scene, spec, settings.devices).estimate(settings).devices
        needed = {d.device: d.weights_bytes or 0 for d in found if d.device != "host"}
    return Landing(scene.machine, needed, window)


def _said(code: str, **data: str | int) -> str:
    return f"{render('finding', code, data)} {render('remedy', code, data)}"
