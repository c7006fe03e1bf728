"""Which point wins: fastest, read with what is known of curves and of noise."""

from collections.abc import Iterable

from app.domain.settings import SETTINGS, FlashAttn, Settings
from app.domain.sweep import Tie
from app.sweep.compare import difference, is_firm_tie, is_settled, seems_slower
from app.sweep.points import Point
from app.sweep.speed_model import family_of

KV_GAIN = 1.05  # a smaller KV type must be this much faster to be recommended…
KV_SLACK = 0.005  # …as far as measurement can tell: the user did allow the type
FULL_TYPES = ("f16", "f32", "bf16")


def pick(points: Iterable[Point]) -> Point | None:
    """Return the point to recommend before ties are looked at.

    Within a family (one set of knobs) more layers on the GPU are faster, so a rung below the
    largest one counts only if the largest is slower beyond noise. A quantised KV cache counts
    only if it is 5 % faster than the best without.
    """
    heads = family_heads(points)
    if not heads:
        return None
    heads = [h for h in heads if not any(_costs_layers(h, other) for other in heads)]
    fastest = min(heads, key=lambda p: p.request_s)
    if fastest.settings.type_k in FULL_TYPES:
        return fastest
    full = [p for p in heads if p.settings.type_k in FULL_TYPES]
    rival = min(full, key=lambda p: p.request_s, default=None)
    if rival is None or rival.request_s >= (KV_GAIN - KV_SLACK) * fastest.request_s:
        return fastest
    return rival


def _costs_layers(point: Point, other: Point) -> bool:
    """Whether ``point`` gave up layers that ``other`` has for attention that gains nothing firm."""
    mine, theirs = point.settings, other.settings
    is_off = mine.flash_attn is FlashAttn.OFF and theirs.flash_attn is not FlashAttn.OFF
    alike = mine.devices == theirs.devices and mine.n_cpu_moe == theirs.n_cpu_moe
    alike = alike and mine.type_k == theirs.type_k
    fewer = mine.n_gpu_layers < theirs.n_gpu_layers
    return is_off and alike and fewer and not seems_slower(other, point)


def resolve_ties(winner: Point, points: Iterable[Point]) -> tuple[Point, tuple[Tie, ...]]:
    """Return the point that wins its ties, and the ties: more headroom, then simpler."""
    equal = [
        p
        for p in points
        if p.is_clean
        and p.settings != winner.settings
        and p.settings.type_k in (winner.settings.type_k, *FULL_TYPES)
        and is_firm_tie(winner, p)
    ]
    kept = min([winner, *equal], key=lambda p: (p.total_bytes, distance_from_default(p.settings)))
    ties = []
    for point in [winner, *equal]:
        if point.settings == kept.settings:
            continue
        less_memory = kept.total_bytes < point.total_bytes
        ties.append(
            Tie(
                kept=kept.indices[-1],
                dropped=point.indices[-1],
                difference_frac=difference(kept, point).median,
                rule="more_headroom" if less_memory else "simpler",
            )
        )
    return kept, tuple(ties)


def distance_from_default(settings: Settings) -> tuple[int, int]:
    """Return how many knobs differ from llama.cpp's defaults, and by how much the batch does."""
    default = Settings(n_gpu_layers=0)
    free = ("n_gpu_layers", "n_cpu_moe", "n_ctx", "devices", "n_seq_max", "n_threads")
    knobs = [s.name for s in SETTINGS if s.name not in free]
    changed = sum(getattr(settings, n) != getattr(default, n) for n in knobs)
    return changed, abs(settings.n_ubatch - default.n_ubatch)


def best_of(points: Iterable[Point]) -> Point | None:
    """Return the point to recommend, ties resolved."""
    every = list(points)
    winner = pick(every)
    return None if winner is None else resolve_ties(winner, every)[0]


def family_heads(points: Iterable[Point]) -> list[Point]:
    """Return the point of each family and kind of placement that may be recommended."""
    clean = [p for p in points if p.is_clean]
    curves: dict[tuple[Settings, bool], list[Point]] = {}
    for point in clean:
        # expert layers in RAM and plain layers are two curves: neither says what the other does
        curves.setdefault((family_of(point.settings), point.rung.n_cpu_moe > 0), []).append(point)
    return [_head(members) for members in curves.values()]


def undecided_rival(points: Iterable[Point], winner: Point) -> Point | None:
    """Return the fastest point that could still turn out to be better than ``winner``.

    The heads of the other families and what is faster than the winner in its own.
    """
    every = list(points)
    rivals = [h for h in family_heads(every) if h.settings != winner.settings]
    rivals += [
        p for p in every if p.is_clean and p.request_s < winner.request_s and p not in rivals
    ]
    open_ones = [r for r in rivals if not is_decided(winner, r)]
    if winner.settings.type_k not in FULL_TYPES:
        # first against the best without, which it must beat by 5 %
        open_ones = [r for r in open_ones if r.settings.type_k in FULL_TYPES] or open_ones
    return min(open_ones, key=lambda r: _weighed_s(r, winner), default=None)


def _weighed_s(point: Point, winner: Point) -> float:
    """Return seconds to compare: a quantised cache would have to be much faster."""
    has_to_gain = winner.settings.type_k in FULL_TYPES and point.settings.type_k not in FULL_TYPES
    return point.request_s * (KV_GAIN if has_to_gain else 1.0)


def is_decided(winner: Point, rival: Point) -> bool:
    """Whether measuring more would hardly change which of the two is recommended."""
    quantised = [p for p in (winner, rival) if p.settings.type_k not in FULL_TYPES]
    if len(quantised) != 1:
        return is_settled(winner, rival)
    full = rival if quantised[0] is winner else winner
    diff = difference(quantised[0], full)
    return not diff.low < KV_GAIN - 1 < diff.high


def _head(members: list[Point]) -> Point:
    """Return the highest rung that no lower one seems to beat."""
    ordered = sorted(members, key=lambda p: p.total_bytes)
    head = ordered[0]
    for i, point in enumerate(ordered):
        # not the head alone: three steps of 1.5 % are no tie
        if not any(seems_slower(point, lower) for lower in ordered[:i]):
            head = point
    return head
