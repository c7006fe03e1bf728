"""Runs the governor against the simulated machine, as the keeper runs it against a real one."""

from collections.abc import Callable

import msgspec

from app.domain.record import Record
from app.power.cooling import Known, at_target, recall
from app.power.governor import govern, release, settle
from app.power.known import known_of
from app.power.records import (
    Action,
    GovernedDevice,
    Knob,
    LockClocks,
    Reading,
    Restore,
    SetPowerLimit,
    Wish,
)
from app.power.state import GovernorState
from app.power.targets import targets
from tests.fakes.thermal_cards import Card
from tests.fakes.thermal_plant import Plant, Work

WINDOW_S = 600
replace = msgspec.structs.replace


class Moment(Record, frozen=True, kw_only=True):
    """One second of a run."""

    t_s: float
    die_c: float
    limit_w: float
    power_w: float
    duty: float
    tokens: float
    actions: tuple[Action, ...]


class Run:
    """A machine under a governor (or under none, to compare)."""

    def __init__(
        self,
        plant: Plant,
        wish: Wish | None = None,
        *,
        device: GovernedDevice | None = None,
        is_governed: bool = True,
        work: Callable[[int], Work] = lambda t: "prefill" if t % 60 < 3 else "decode",
        known: Known | None = None,
    ) -> None:
        self.plant = plant
        self.wish = wish or Wish()
        self.device = device or plant.device()
        self.is_governed = is_governed
        self.work = work
        if known is not None:
            target_c, _ = targets(self.device, self.wish, plant.reading())
            known = at_target(known, target_c)
        # as after a day, so that the device is cold
        self.state = GovernorState(cooling=recall(known, 86400.0))
        self.found_w = plant.limit_w
        self.moments: list[Moment] = []
        self.said: set[str] = set()
        self._tokens = 0.0
        self.break_reading: Callable[[Reading], Reading] = lambda r: r

    def go(self, seconds: int) -> "Run":
        """Let time pass; the first reading is taken before anything runs, as the keeper does."""
        if self.is_governed and self.state.t_s is None:
            first = replace(self.break_reading(self.plant.reading()), active=False)
            self.state, _ = govern(self.device, self.wish, self.state, first, self.plant.t_s)
        for _ in range(seconds):
            self.plant.advance(self.work(int(self.plant.t_s)), self.state.knobs.duty)
            actions: tuple[Action, ...] = ()
            if self.is_governed:
                reading = self.break_reading(self.plant.reading())
                self.state, actions = govern(
                    self.device, self.wish, self.state, reading, self.plant.t_s
                )
                self.carry_out(actions)
            self._note(actions)
        return self

    def finish(self) -> "Run":
        """End the use: everything goes back."""
        self.state, actions = release(self.state)
        self.carry_out(actions)
        return self

    def carry_out(self, actions: tuple[Action, ...]) -> None:
        """Do what the helper and the worker would."""
        for action in actions:
            match action:
                case SetPowerLimit(watts=watts):
                    self._set_limit(watts)
                case LockClocks(high_mhz=mhz):
                    self.plant.lock_mhz = mhz
                case Restore(knob=Knob.POWER_LIMIT):
                    self._restore_limit()
                case Restore():
                    self.plant.lock_mhz = None
                case _:
                    pass  # the duty is read from the state; a lost device takes no orders

    def learnt(self) -> Known | None:
        """Return what a later session of this device begins with."""
        return known_of(self.state, self.device, self.wish, self.plant.reading(), at_s=0.0)

    def changes(self) -> list[Moment]:
        """Return the moments in which something was turned."""
        return [m for m in self.moments if m.actions]

    def ms_per_token(self, start: int, end: int) -> float:
        """Return the mean time per token while writing between two seconds, ms; pauses count."""
        part = [m.tokens for m in self.moments[start:end] if m.tokens > 0]
        return 1000.0 * len(part) / sum(part) if part else 0.0

    def drift_frac(self) -> float:
        """Return how much slower the slowest ten minutes were than the first ten (in writing)."""
        first = self.ms_per_token(0, WINDOW_S)
        later = range(WINDOW_S, len(self.moments) - WINDOW_S + 1, WINDOW_S)
        return max(self.ms_per_token(t, t + WINDOW_S) for t in later) / first - 1.0

    def _set_limit(self, watts: float) -> None:
        """As the helper: what is not read back as set is put back as it was found."""
        why = None if self.plant.set_limit(watts) else "refused"
        if why is None and abs(self.plant.enforced_w() - watts) > 1.0:
            self.plant.limit_w, why = self.found_w, "not_applied"
        self.state = settle(self.state, Knob.POWER_LIMIT, why)

    def _restore_limit(self) -> None:
        """As the helper: a limit that somebody else set is left alone."""
        if self.plant.written and abs(self.plant.limit_w - self.plant.written[-1]) < 1.0:
            self.plant.set_limit(self.found_w)

    def _note(self, actions: tuple[Action, ...]) -> None:
        moment = Moment(
            t_s=self.plant.t_s,
            die_c=self.plant.die_c,
            limit_w=self.plant.enforced_w(),
            power_w=self.plant.power_w,
            duty=self.state.knobs.duty,
            tokens=self.plant.tokens - self._tokens,
            actions=actions,
        )
        self._tokens = self.plant.tokens
        self.moments.append(moment)
        self.said.update(note.code for note in self.state.notes)


def best_constant_ms(card: Card, ambient_c: float, knob: Knob, target_c: float) -> float:
    """Return the least ms per token at which one setting of ``knob`` holds ``target_c``.

    What a governor could do at best with this knob on this machine: found by bisection over a
    setting that never moves, each settled for three hours.
    """
    low, high = 0.1, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        temp_c, _ = _settled(card, ambient_c, knob, middle)
        low, high = (middle, high) if temp_c <= target_c else (low, middle)
    return _settled(card, ambient_c, knob, low)[1]


def _settled(card: Card, ambient_c: float, knob: Knob, share: float) -> tuple[float, float]:
    """Return mean temperature and ms per token in the third hour at a share of the knob's range."""
    plant = Plant(card, ambient_c)
    if knob is Knob.POWER_LIMIT:
        plant.limit_w = max(card.min_w, share * card.default_w)
    elif knob is Knob.CLOCKS:
        plant.lock_mhz = share * card.f_max_mhz
    duty = share if knob is Knob.PACING else 1.0
    temps = []
    for second in range(3 * 3600):
        if second == 2 * 3600:
            begin_tok = plant.tokens
        plant.advance("prefill" if second % 60 < 3 else "decode", duty)
        temps.append(plant.die_c)
    n_writing_s = 3600 * 57 / 60
    return sum(temps[-3600:]) / 3600, 1000.0 * n_writing_s / (plant.tokens - begin_tok)
