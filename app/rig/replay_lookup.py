"""Finds, or interpolates, what a recording says about one configuration.

Rules (in this order): the exact point; the nearest recorded ``n_ubatch`` or ``n_threads`` with
everything else equal; interpolation along ``n_gpu_layers``, then ``depth`` (outside the recorded
range: the nearest), then ``n_cpu_moe``. Speeds are interpolated in seconds per token, bytes
linearly; an interpolated need at or above the smallest recorded out-of-memory need is out of
memory. Anything else is not recorded (``None``).
"""

from collections.abc import Callable, Iterable

from app.domain.outcome import OUTCOMES, Outcome
from app.domain.settings import FlashAttn, Settings
from app.rig.replay_file import ReplayPoint
from app.rig.virtual import Truth

_AXES = ("n_gpu_layers", "n_cpu_moe", "n_ubatch", "n_threads")

_Place = tuple[int, int, int]  # n_gpu_layers, n_cpu_moe, depth
_Line = dict[int, Truth]
_Grid = dict[tuple[int, int], _Line]  # (n_cpu_moe, depth) → n_gpu_layers → truth
_Finder = Callable[[_Grid], Truth | None]


class ReplayTable:
    """The points of a recording, indexed for lookup."""

    def __init__(self, points: Iterable[ReplayPoint]) -> None:
        """Index ``points``; of two for the same configuration the later one counts."""
        # (names of the settings a point states) → (their values) → (ubatch, threads) → place
        self._shapes: dict[
            tuple[str, ...], dict[tuple[object, ...], dict[tuple[int, int], _Grid]]
        ] = {}
        self._oom_bytes: dict[str, int] = {}
        for point in points:
            self._add(point)
        # what states more of a configuration knows it better
        self._shapes = dict(sorted(self._shapes.items(), key=lambda s: -len(s[0])))

    def find(self, settings: Settings, depth: int) -> Truth | None:
        """Return what is recorded for concrete ``settings`` at ``depth``, or ``None``."""
        for names, groups in self._shapes.items():
            key = tuple(_value(settings, n) for n in names if n not in _AXES)
            cells = groups.get(key)
            if cells is None:
                continue
            found = self._find_in(cells, names, settings, depth)
            if found is not None:
                return found
        return None

    def need(self, settings: Settings) -> Truth | None:
        """Return the need of concrete ``settings``, which is the same at any depth.

        The configuration itself at another depth counts before another batch at depth 0.
        """
        for names, groups in self._shapes.items():
            key = tuple(_value(settings, n) for n in names if n not in _AXES)
            asked = {n: getattr(settings, n) if n in names else 0 for n in _AXES}
            grid = groups.get(key, {}).get((asked["n_ubatch"], asked["n_threads"]), {})
            for moe, depth in sorted(grid):
                found = grid[moe, depth].get(asked["n_gpu_layers"])
                if moe == asked["n_cpu_moe"] and found is not None and found.device_bytes:
                    return found
        return self.find(settings, 0)

    def _add(self, point: ReplayPoint) -> None:
        names = tuple(sorted(point.settings))
        key = tuple(_normal(n, point.settings[n]) for n in names if n not in _AXES)
        axes = {n: int(point.settings[n]) for n in _AXES if n in point.settings}  # type: ignore[arg-type]
        cell = (axes.get("n_ubatch", 0), axes.get("n_threads", 0))
        row = (axes.get("n_cpu_moe", 0), point.depth)
        truth = Truth(
            outcome=point.outcome,
            prefill_tok_s=point.prefill_tok_s,
            decode_tok_s=point.decode_tok_s,
            device_bytes=point.device_bytes,
            shared_growth_bytes=point.shared_growth_bytes,
        )
        groups = self._shapes.setdefault(names, {})
        grid = groups.setdefault(key, {}).setdefault(cell, {})
        grid.setdefault(row, {})[axes.get("n_gpu_layers", 0)] = truth
        if point.outcome is Outcome.OUT_OF_MEMORY:
            for device, n_bytes in point.device_bytes.items():
                known = self._oom_bytes.get(device)
                self._oom_bytes[device] = n_bytes if known is None else min(known, n_bytes)

    def _find_in(
        self,
        cells: dict[tuple[int, int], _Grid],
        names: tuple[str, ...],
        settings: Settings,
        depth: int,
    ) -> Truth | None:
        asked = {n: getattr(settings, n) if n in names else 0 for n in _AXES}
        wanted = (asked["n_ubatch"], asked["n_threads"])
        place = (asked["n_gpu_layers"], asked["n_cpu_moe"], depth)
        exact = _nearest_cell(cells, wanted, lambda grid: grid.get(place[1:], {}).get(place[0]))
        if exact is not None:
            return exact
        return _nearest_cell(cells, wanted, lambda grid: self._interpolate(grid, place))

    def _interpolate(self, grid: _Grid, place: _Place) -> Truth | None:
        layers, moe, depth = place

        def along_layers(moe: int, depth: int) -> Truth | None:
            return self._between(grid.get((moe, depth), {}), layers, outside=False)

        def along_depth(moe: int) -> Truth | None:
            depths = [d for (m, d) in grid if m == moe]
            line = {d: t for d in depths if (t := along_layers(moe, d)) is not None}
            return self._between(line, depth, outside=True)

        found = along_depth(moe)
        if found is not None:
            return found
        values = {m for (m, _) in grid}
        line = {m: t for m in values if (t := along_depth(m)) is not None}
        return self._between(line, moe, outside=False)

    def _between(self, line: _Line, x: int, *, outside: bool) -> Truth | None:
        """Interpolate on one axis; ``outside`` allows the nearest end beyond the range."""
        if x in line:
            return line[x]
        below = max((v for v in line if v < x), default=None)
        above = min((v for v in line if v > x), default=None)
        if below is None or above is None:
            end = below if above is None else above
            return line[end] if outside and end is not None else None
        return self._blend(line[below], line[above], (x - below) / (above - below))

    def _blend(self, low: Truth, high: Truth, share: float) -> Truth:
        n_bytes = {
            device: round(_mix(n, high.device_bytes[device], share))
            for device, n in low.device_bytes.items()
            if device in high.device_bytes
        }
        growth = round(_mix(low.shared_growth_bytes, high.shared_growth_bytes, share))
        known = Truth(outcome=Outcome.UNSUPPORTED, device_bytes=n_bytes, shared_growth_bytes=growth)
        if any(n >= self._oom_bytes.get(d, n + 1) for d, n in n_bytes.items()):
            return known.ended(Outcome.OUT_OF_MEMORY)
        for end in (low, high):
            if not OUTCOMES[end.outcome].has_speed:
                return known.ended(end.outcome)
        return Truth(
            outcome=high.outcome if high.outcome is low.outcome else Outcome.OK,
            prefill_tok_s=_mix_speed(low.prefill_tok_s, high.prefill_tok_s, share),
            decode_tok_s=_mix_speed(low.decode_tok_s, high.decode_tok_s, share),
            device_bytes=n_bytes,
            shared_growth_bytes=growth,
        )


def _nearest_cell(
    cells: dict[tuple[int, int], _Grid], wanted: tuple[int, int], find: _Finder
) -> Truth | None:
    """Return the first find, nearest (``n_ubatch``, ``n_threads``) first, then the smaller."""

    def distance(cell: tuple[int, int]) -> tuple[int, int, int, int, int]:
        ubatch, threads = abs(cell[0] - wanted[0]), abs(cell[1] - wanted[1])
        return ((ubatch > 0) + (threads > 0), ubatch, threads, *cell)

    for cell in sorted(cells, key=distance):
        found = find(cells[cell])
        if found is not None:
            return found
    return None


def _value(settings: Settings, name: str) -> object:
    return _normal(name, getattr(settings, name))


def _normal(name: str, value: object) -> object:
    if name == "flash_attn":
        return "off" if value == FlashAttn.OFF else "on"
    if isinstance(value, list | tuple):
        return tuple(value)
    return str(value) if isinstance(value, str) else value


def _mix(low: float, high: float, share: float) -> float:
    return low + (high - low) * share


def _mix_speed(low: float | None, high: float | None, share: float) -> float | None:
    if low is None or high is None:
        return None
    return 1 / _mix(1 / low, 1 / high, share)
