"""What was learnt of each device's cooler, kept between runs."""

import contextlib
from pathlib import Path

import msgspec

from app.domain.errors import EnvironmentProblem
from app.domain.record import encode_json
from app.power.cooling import SAME_C, Known, at_target
from app.power.records import GovernedDevice, Reading, Wish
from app.power.state import GovernorState
from app.power.steady import is_sure
from app.power.targets import targets
from app.runtime import atomic_write

FILE = "power-cooling.json"
KEPT_MAX = 16
"""A cap sweep alone may give eight."""

SEEN_S = 180.0
"""Work after which a figure of a device that is still warming up is better than none."""

Learnt = dict[str, tuple[Known, ...]]


class Coolers:
    """``power-cooling.json``: by device, what held which temperature. Losing it costs little."""

    def __init__(self, folder: Path) -> None:
        """Read and write in ``folder``."""
        self._path = folder / FILE

    def find(self, key: str, target_c: float, profile: str | None) -> Known | None:
        """Return what was learnt under the most similar conditions: same profile, then target."""
        found = [k for k in self._read().get(key, ()) if _is_plausible(k)]
        known = min(
            found, key=lambda k: (k.profile != profile, abs(k.target_c - target_c)), default=None
        )
        return None if known is None else at_target(known, target_c)

    def keep(self, key: str, known: Known, *, is_sure: bool) -> None:
        """Keep ``known``; what is not sure (not warm through) replaces nothing."""
        learnt = self._read()
        earlier = learnt.get(key, ())
        rest = tuple(k for k in earlier if not _is_like(k, known))
        if not is_sure and any(not k.is_cautious for k in earlier if _is_like(k, known)):
            return
        learnt[key] = (*rest, known)[-KEPT_MAX:]
        with contextlib.suppress(EnvironmentProblem):
            atomic_write(self._path, encode_json(learnt))

    def _read(self) -> Learnt:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Learnt)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return {}


def known_of(
    state: GovernorState, device: GovernedDevice, wish: Wish, reading: Reading, at_s: float
) -> Known | None:
    """Return what a session learnt, ``None`` when that is nothing.

    Args:
        state: At its end.
        device: Ranges.
        wish: What the user asked for.
        reading: The machine.
        at_s: Seconds since 1970.
    """
    cooling, is_warm = state.cooling, is_sure(state.cooling)
    # In full mode nothing goes by the cooler, but what is seen of it serves the other modes.
    is_seen = is_warm or (cooling.c_per_w is None and cooling.seen_s >= SEEN_S)
    c_per_w = (cooling.fitted() if is_seen else None) or cooling.c_per_w
    if c_per_w is None or cooling.room_c is None:
        return None
    return Known(
        target_c=targets(device, wish, reading)[0] - state.shift_c,
        c_per_w=c_per_w,
        room_c=cooling.room_c,
        soak_w=cooling.soak_w,
        at_s=at_s,
        profile=reading.profile,
        knobs=state.knobs,
        draw_w=cooling.work_w,
        is_cautious=cooling.is_cautious or (cooling.c_per_w is None and not is_warm),
        lasting=state.even.lasting or cooling.lasting,
    )


def _is_plausible(known: Known) -> bool:
    """Whether a cooler can be like that: the governor divides by these."""
    lasting = known.lasting
    is_lasting = lasting is None or (lasting.frac > 0.0 and lasting.carried_frac > 0.0)
    return known.c_per_w > 0.0 and is_lasting


def _is_like(one: Known, other: Known) -> bool:
    return one.profile == other.profile and abs(one.target_c - other.target_c) <= SAME_C
