"""Predicts times between and next to measured points; chooses trials, never an answer.

Seconds per token are close to linear in what left the GPU (R² 0.987–0.994 on one card), for
prefill and decode each. The axis is bytes on the device, so that the output layer, worth several
blocks, falls on the line too; experts count less in decode, which reads only the active ones. A
family is one set of knobs; families measured on the same rung are related by a factor, on two
rungs by a difference. Two end points predict the rest within 8–22 %.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from app.domain.record import Record
from app.domain.settings import FlashAttn, LoadMode, Settings
from app.sweep.expert_line import ExpertLine
from app.sweep.kin import kin_of
from app.sweep.ladder import Rung, rung_of
from app.sweep.points import Demand, Point

EXPERT_SHARE = 0.15  # of an expert's bytes that count in decode
FAR_FRAC = 0.2  # beyond the ends: continue the line through a point this far away, if there is one

Phases = tuple[float, float]  # seconds per token: prefill, decode


class Prediction(Record, frozen=True, kw_only=True):
    """Expected seconds for the goal's request, with a band around it."""

    request_s: float
    low_s: float
    high_s: float


class SpeedModel:
    """Piecewise linear in rungs, one factor per family and phase."""

    def __init__(
        self,
        points: Iterable[Point],
        screened: Iterable[Point],
        ladder: tuple[Rung, ...],
        need: Demand,
        rung_bytes: Callable[[int], int | None],
        cpu_decode_s: tuple[float | None, float | None] = (None, None),
        line: ExpertLine | None = None,
    ) -> None:
        """Fit the points with a speed that lie on ``ladder``.

        Args:
            points: Timed at the goal's depth.
            screened: Timed with an empty cache: they only relate families to each other.
            ladder: The placements.
            need: The goal's request.
            rung_bytes: Device memory of a rung, ``None`` where it is not known.
            cpu_decode_s: Seconds per token of the CPU alone, at the goal's depth and in an empty
                context: gives a line where one rung is timed.
            line: What experts in RAM cost, where trials tell.
        """
        self._need = need
        self._ladder = ladder
        self._bytes = rung_bytes
        self._cpu_decode_s = cpu_decode_s
        self._line = line
        self._index = {rung: i for i, rung in enumerate(ladder)}
        self._families = self._by_family(points)
        self._screened = self._by_family(screened)

    def predict(self, settings: Settings) -> Prediction | None:
        """Return the expected request time of ``settings``, ``None`` without any basis.

        The band is the distance to the nearest measured rung in time, at least 8 %.
        """
        index = self._index.get(rung_of(settings))
        phases = None if index is None else self.phases(family_of(settings), index)
        if phases is None or index is None:
            return None
        time_s = self._need.n_prompt * phases[0] + self._need.n_gen * phases[1]
        measured = self._families.get(family_of(settings), {})
        spread = 0.0 if index in measured else 0.08
        return Prediction(
            request_s=time_s, low_s=time_s * (1 - spread), high_s=time_s * (1 + spread)
        )

    def phases(self, family: Settings, index: int) -> Phases | None:
        """Return expected seconds per token of ``family`` on rung ``index``."""
        if not self._families:
            return None
        own = self._families.get(family, {})
        if index in own or len(own) > 1:
            return self._on_line(own, index)
        twin = None if own else self._by_load_mode(family, index)
        if twin is not None:
            return twin
        if own:
            base = self._families[self._base_family()]
            related = family, self._base_family()
            return self._shifted(self._on_line(base, index), own, base, index, related)
        composed = self._composed(family, index)
        if composed is not None:
            return composed
        screened = self._screened.get(family, {})
        known = max(self._families, key=lambda f: self._kinship(f, family, screened))
        expected = self.phases(known, index)
        if expected is None:
            return None
        base = self._screened.get(known, {})
        return self._shifted(expected, screened, base, index, (family, known))

    def _composed(self, family: Settings, index: int) -> Phases | None:
        """Return what a cache that was never timed with this batch does with it.

        The batch acts on the prompt and the cache on the layers on the device: each keeps its part.
        """
        if family in self._screened:
            return None
        for other in self._screened:
            plain = _with_cache(other, self._base_family())
            if not _same_cache(other, family) or other == plain or plain not in self._screened:
                continue
            expected = self.phases(_with_cache(family, plain), index)
            if expected is None:
                return None
            own, base = self._screened[other], self._screened[plain]
            return self._shifted(expected, own, base, index, (other, plain))
        return None

    def _base_family(self) -> Settings:
        return max(self._families, key=lambda f: (bool(f.devices), len(self._families[f])))

    def _kinship(
        self, known: Settings, family: Settings, screened: Mapping[int, Phases]
    ) -> tuple[bool, int, bool, int]:
        """Return how well the measured family ``known`` tells what ``family`` does."""
        shared = set(self._screened.get(known, {})) & set(screened)
        same = known.devices == family.devices
        return same, len(shared), kin_of(known) == kin_of(family), len(self._families[known])

    def _by_load_mode(self, family: Settings, index: int) -> Phases | None:
        """Return copied weights' times from the mapped ones', by what another family gained."""
        if family.load_mode is LoadMode.MMAP:
            return None
        for known, own in self._families.items():
            twin = self._families.get(mapped(known), {})
            shared = set(own) & set(twin)
            if known.load_mode is family.load_mode and shared:
                rung = min(shared, key=lambda i: abs(i - index))
                expected = self.phases(mapped(family), index)
                a, b = own[rung], twin[rung]
                return expected and (expected[0] * a[0] / b[0], expected[1] * a[1] / b[1])
        return None

    def _by_family(self, points: Iterable[Point]) -> dict[Settings, dict[int, Phases]]:
        families: dict[Settings, dict[int, Phases]] = {}
        for point in points:
            index = self._index.get(point.rung)
            if point.request is not None and not point.grew and index is not None:
                family = families.setdefault(family_of(point.settings), {})
                family[index] = (point.prefill_s, point.decode_s)
        return families

    def _on_line(self, line: Mapping[int, Phases], index: int) -> Phases:
        """Interpolate; beyond the ends continue the line, never below a tenth."""
        if index in line:
            return line[index]
        layers = self._ladder[index].n_gpu_layers
        alike = [k for k in sorted(line) if self._ladder[k].n_gpu_layers == layers]
        # what experts cost shows best between rungs that differ in experts alone
        known = alike if len(alike) > 1 and self._line is None else sorted(line)
        if len(known) == 1:
            return self._from_cpu(line, known[0], index, line[known[0]])
        above = [k for k in known if k > index]
        below = [k for k in known if k < index]
        if above and below:
            ends = [below[-1], above[0]]
        else:
            end = known[-1] if below else known[0]
            far = FAR_FRAC * len(self._ladder)
            others = sorted((k for k in known if k != end), key=lambda k: abs(k - end))
            ends = sorted([end, next((k for k in others if abs(k - end) >= far), others[-1])])
        first, second = line[ends[0]], line[ends[1]]
        mixed = self._mix(line, ends, index)
        if not above and ends[1] - ends[0] < FAR_FRAC * len(self._ladder):
            # two neighbours are no line: noise would be continued
            mixed = mixed[0], self._from_cpu(line, ends[1], index, mixed)[1]
        return (
            max(mixed[0], min(first[0], second[0]) / 10),
            max(mixed[1], min(first[1], second[1]) / 10),
        )

    def _from_cpu(
        self, line: Mapping[int, Phases], known: int, index: int, otherwise: Phases
    ) -> Phases:
        """Continue from the CPU alone through the point ``known``; prefill as there."""
        one, is_deep = line[known], any(line is own for own in self._families.values())
        cpu_s = self._cpu_decode_s[0 if is_deep else 1]
        here, there = self._place(index)[1], self._place(known)[1]
        has_layers = self._ladder[known].n_gpu_layers > 0
        if cpu_s is None or there <= 0 or not has_layers:
            return otherwise
        return one[0], max(cpu_s + (one[1] - cpu_s) * here / there, one[1] / 10)

    def _mix(self, line: Mapping[int, Phases], ends: list[int], index: int) -> Phases:
        """Return the point at ``index`` of the line through the two ``ends``, per phase."""
        (a0, a1), (b0, b1), (x0, x1) = (self._place(i) for i in (*ends, index))
        a, b = line[ends[0]], line[ends[1]]
        shares = ((x0 - a0) / (b0 - a0 or 1), (x1 - a1) / (b1 - a1 or 1))
        return a[0] + (b[0] - a[0]) * shares[0], a[1] + (b[1] - a[1]) * shares[1]

    def _place(self, index: int) -> Phases:
        """Return where a rung lies on the axes of prefill and decode."""
        known = self._bytes(index)
        if known is None:
            return float(index), float(index)
        rung = self._ladder[index]
        first = next(i for i, r in enumerate(self._ladder) if r.n_gpu_layers == rung.n_gpu_layers)
        start = known if first == index else self._bytes(first)
        if start is None:
            return float(index), float(index)
        if self._line is not None:
            return float(known), self._line.place(rung)
        return float(known), start + EXPERT_SHARE * (known - start)

    def _shifted(
        self,
        expected: Phases,
        own: Mapping[int, Phases],
        base: Mapping[int, Phases],
        index: int,
        related: tuple[Settings, Settings],
    ) -> Phases:
        """Return ``expected`` of the base family as the other family would have it.

        Families that differ in their cache differ per layer on the device. Kin decode alike.
        Otherwise two shared rungs give a difference that is linear in rungs (a batch acts on the
        layers in RAM) and one gives a factor; none leaves it.
        """
        if not own or not base:
            return expected
        shared = sorted(set(own) & set(base), key=lambda i: (abs(i - index), i))
        if _acts_on_device(*related):
            gap = self._gap_per_layer(own, base, shared)
            if gap is not None:
                n = self._ladder[index].n_gpu_layers
                return _plus(expected, (n * gap[0], n * gap[1]))
        if len(shared) > 1:
            shared = sorted(shared[:2])
            gaps = {i: _minus(own[i], base[i]) for i in shared}
            shifted = _plus(expected, self._mix(gaps, shared, index))
        else:
            nearest = min(own, key=lambda i: abs(i - index))
            there = self._on_line(base, nearest)
            ratio = own[nearest][0] / there[0], own[nearest][1] / there[1]
            shifted = expected[0] * ratio[0], expected[1] * ratio[1]
        are_kin = kin_of(related[0]) == kin_of(related[1])
        return (shifted[0], expected[1]) if are_kin else shifted

    def _gap_per_layer(
        self, own: Mapping[int, Phases], base: Mapping[int, Phases], shared: list[int]
    ) -> Phases | None:
        """Return the difference per layer on the device that fits all ``shared`` rungs best."""
        rungs = shared or [min(own, key=lambda i: -self._ladder[i].n_gpu_layers)]
        layers = [self._ladder[i].n_gpu_layers for i in rungs]
        if not any(layers):
            return None
        gaps = [_minus(own[i], self._on_line(base, i)) for i in rungs]
        scale = sum(n * n for n in layers)
        weighed = [(n * g[0], n * g[1]) for n, g in zip(layers, gaps, strict=True)]
        return sum(w[0] for w in weighed) / scale, sum(w[1] for w in weighed) / scale


def family_of(settings: Settings) -> Settings:
    """Return ``settings`` without its placement: what shares one curve.

    Flash attention ``auto`` means on: a question never says what it became.
    """
    flash = FlashAttn.OFF if settings.flash_attn is FlashAttn.OFF else FlashAttn.ON
    return msgspec.structs.replace(settings, n_gpu_layers=0, n_cpu_moe=0, flash_attn=flash)


def mapped(family: Settings) -> Settings:
    """Return ``family`` with its weights mapped from the file."""
    return msgspec.structs.replace(family, load_mode=LoadMode.MMAP)


def _acts_on_device(family: Settings, other: Settings) -> bool:
    """Whether the families differ in what acts on the layers on the device: the cache."""
    keys = ("flash_attn", "type_k", "type_v")
    return any(getattr(family, k) != getattr(other, k) for k in keys)


def _same_cache(family: Settings, other: Settings) -> bool:
    return not _acts_on_device(family, other)


def _with_cache(family: Settings, other: Settings) -> Settings:
    """Return ``family`` with the cache and attention of ``other``."""
    return msgspec.structs.replace(
        family, flash_attn=other.flash_attn, type_k=other.type_k, type_v=other.type_v
    )


def _plus(times: Phases, gap: Phases) -> Phases:
    """Add, but never go below a tenth."""
    return max(times[0] + gap[0], times[0] / 10), max(times[1] + gap[1], times[1] / 10)


def _minus(a: Phases, b: Phases) -> Phases:
    return a[0] - b[0], a[1] - b[1]
