"""Stage 5: winner against runner-up in turns, until they separate."""

from app.domain.settings import Settings
from app.sweep.compare import TIE_FRAC, difference
from app.sweep.pick import undecided_rival
from app.sweep.search import DISTURBED_FRAC, Asking, Search

TURNS = 3
FINAL_FRAC = 0.08  # a runner-up further behind is no rival


def finals(s: Search) -> Asking[None]:
    """Time winner and runner-up in turns until they separate or the rounds are used."""
    yield from _again_undisturbed(s)
    for turn in range(1 if s.is_quick else TURNS):
        winner = s.best()
        rival = None if winner is None else undecided_rival(s.points().values(), winner)
        if winner is None or rival is None:
            return
        gap = difference(winner, rival).median
        if gap > FINAL_FRAC or (turn and abs(gap) < TIE_FRAC):
            return
        done = yield from _in_turns(s, winner.settings, rival.settings)
        if not done:
            return


def _again_undisturbed(s: Search) -> Asking[None]:
    """Repeat points that were disturbed every time and could lead without; no lasting heat."""
    if s.stays_hot():
        return
    for point in s.clean():
        winner = s.best()
        if point.disturbed and winner and point.request_s < DISTURBED_FRAC * winner.request_s:
            yield from s.ask("finals", s.as_asked(point.settings), reps=(3, 8))


def _in_turns(s: Search, winner: Settings, rival: Settings) -> Asking[bool]:
    """Time winner, rival, winner (rival, winner where the winner is not loaded).

    With one load left each is timed once more where that needs no more.
    """
    order = [winner, rival, winner] if s.is_loaded(winner) else [rival, winner]
    if winner.load_key == rival.load_key:
        order = [winner, rival] * 2
    elif s.loads_left < 2:
        order = order[:2] if s.is_loaded(order[0]) else order[:1]
    for settings in order:
        trial = yield from s.ask("finals", s.as_asked(settings), reps=(5, 16), max_s=40)
        if trial is None:
            return False
    return True
