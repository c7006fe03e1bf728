"""Stage 0, the references, and the shape of the curve between the measured placements."""

import math
from itertools import pairwise

import msgspec

from app.domain.overrides import read_overrides
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import SweepRequest
from app.domain.trial import Trial, Workload
from app.sweep.compare import is_slower
from app.sweep.cost import fastest, timed_s
from app.sweep.known import PROBE_STAGE
from app.sweep.ladder import Rung, expert_ladder, layer_ladder
from app.sweep.points import Point, usable
from app.sweep.search import Asking, Search

CPU_REFERENCE_S = 60.0  # the CPU reference runs when it is expected to take no longer
BEND_FRAC = 0.03  # a rung this much slower than the line through smaller ones is suspicious
NO_LEAD = 1.1  # a rung expected to be this much slower than what leads tells nothing
MAX_BISECTIONS = 6
PROBE = Workload(n_prompt=64, n_gen=16, depth=0)
SHORT_PROBE = Workload(n_prompt=16, n_gen=4, depth=0)


def probe(s: Search, settings: Settings) -> Asking[None]:
    """Time a few tokens first: the search shrinks its workload where a pass takes too long.

    With little time on the CPU these are fewer still: on a slow machine they took all of it.
    """
    is_short = s.is_quick and not settings.devices
    workload = SHORT_PROBE if is_short else PROBE
    workload = msgspec.structs.replace(workload, n_seq=s.plan.workload.n_seq)
    yield from s.ask(PROBE_STAGE, settings, workload=workload, reps=(1, 1), max_s=1)


def auto_fit(s: Search, base: Settings) -> Asking[Point | None]:
    """Measure what llama.cpp would choose by itself, unless that is measured already."""
    settings = auto_fit_settings(s, base)
    if settings is None or s.is_dominated(settings):
        return None
    return (yield from s.measure("auto_fit", settings))


def auto_fit_settings(s: Search, base: Settings) -> Settings | None:
    """Return llama.cpp's own choice: default knobs, as much as leaves 1,024 MiB free."""
    default = Settings(n_gpu_layers=0)
    plain = msgspec.structs.replace(
        base,
        n_ubatch=default.n_ubatch,
        flash_attn=FlashAttn.AUTO,
        type_k="f16",
        type_v="f16",
        n_threads=s.plan.space.host.cores_physical,
        n_threads_batch=0,
        load_mode=default.load_mode,
        override_tensor=default.override_tensor,
        split_mode=default.split_mode,
    )
    free = SweepRequest()
    space = s.plan.space
    ladder = expert_ladder(free, space) or layer_ladder(free, space)
    index = s.bounds.auto_fit(ladder, plain)
    return None if index is None else ladder[index].of(plain)


def cpu_settings(base: Settings) -> Settings:
    """Return ``base`` without any device, nor rules that put tensors on one."""
    rules = base.override_tensor
    names_device = any(rule.device for rule in read_overrides(rules))
    return msgspec.structs.replace(
        base, n_gpu_layers=0, n_cpu_moe=0, devices=(), override_tensor="" if names_device else rules
    )


def cpu_look(s: Search, base: Settings) -> Asking[Trial | None]:
    """Time a few tokens on the CPU alone: what it costs to measure, and whether it may lead."""
    settings = cpu_settings(base)
    known = s.answered(settings, probe_workload(s))
    if known is not None:
        return known
    return (yield from s.ask("cpu", settings, workload=probe_workload(s), reps=(1, 1), max_s=1))


def cpu_reference(
    s: Search, base: Settings, limit_s: float = CPU_REFERENCE_S
) -> Asking[Point | None]:
    """Measure the CPU alone where that is expected to take at most ``limit_s``."""
    settings = cpu_settings(base)
    if s.point(settings) is not None:
        return s.point(settings)
    limit_s = min(limit_s, s.seconds_left / 3)
    trial = yield from cpu_look(s, base)
    if trial is None or not usable(trial):
        return None
    if timed_s(s.workload, fastest(trial), 3) > limit_s:
        return None
    return (yield from s.measure("cpu", settings))


def shape(s: Search, base: Settings, ladder: tuple[Rung, ...], spare: int) -> Asking[None]:
    """Look between measured rungs where the curve turns: silent spills and slow devices."""
    for _ in range(MAX_BISECTIONS):
        curve = curve_of(s, base, ladder)
        index = _suspicious(curve) or _between(s, curve) or _dip(curve, ladder)
        if index is None or _cannot_lead(s, curve, index):
            break
        point = yield from s.measure("layers", ladder[index].of(base), spare=spare)
        if point is None:
            break
    curve = curve_of(s, base, ladder)
    lowest = min(range(len(curve)), key=lambda i: curve[i][1].request_s, default=0)
    for index, after in curve[lowest + 1 :]:
        if index and is_slower(after, curve[lowest][1]):
            kept, bad = (s.bounds.need(ladder[i].of(base)) for i in (curve[lowest][0], index))
            s.reject(bad.device_bytes(), kept.device_bytes())
            return


def _cannot_lead(s: Search, curve: list[tuple[int, Point]], index: int) -> bool:
    """Whether the line through the rungs below ``index`` does not reach what leads elsewhere."""
    best, below = s.best(), [c for c in curve if c[0] < index][-2:]
    return best is not None and len(below) == 2 and _line(below, index) > NO_LEAD * best.request_s


def curve_of(s: Search, base: Settings, ladder: tuple[Rung, ...]) -> list[tuple[int, Point]]:
    """Return the measured rungs of ``ladder`` with the knobs of ``base``, ascending.

    The CPU alone stands in for rung 0.
    """
    curve: dict[int, Point] = {}
    cpu = s.point(cpu_settings(base))
    if cpu is not None and cpu.is_clean and not ladder[0].n_gpu_layers:
        curve[0] = cpu
    for index, rung in enumerate(ladder):
        point = s.point(rung.of(base))
        if point is not None and point.is_clean and not point.disturbed:
            curve[index] = point
    return sorted(curve.items())


def _suspicious(curve: list[tuple[int, Point]]) -> int | None:
    """Return the rung that decides where the curve turns, ``None`` when nothing is odd."""
    if len(curve) < 3:
        return None
    fastest = min(range(len(curve)), key=lambda i: curve[i][1].request_s)
    index, point = curve[fastest]
    if fastest + 1 < len(curve):
        after, worse = curve[fastest + 1]
        if is_slower(worse, point):
            is_end = fastest == 0 and _is_straight(curve)
            return None if is_end or after - index < 2 else (index + after) // 2
    (b, _), (c, _) = curve[-2:]
    return (b + c) // 2 if c - b > 1 and bends(curve) else None


def _between(s: Search, curve: list[tuple[int, Point]]) -> int | None:
    """Return the rung between the only two measured, if the lower is faster and the CPU is not."""
    decode_s = s.cpu_decode_s()
    if len(curve) != 2 or decode_s is None or not curve[0][0]:
        return None
    (low, first), (high, second) = curve
    is_hump = is_slower(second, first) and decode_s > s.shallow_decode_s(first)
    return (low + high) // 2 if is_hump and high - low > 1 else None


def _is_straight(curve: list[tuple[int, Point]]) -> bool:
    """Whether three rungs lie on one line: then the best is an end, not a hump between."""
    (a, first), (b, middle), (c, last) = curve[0], curve[1], curve[-1]
    expected = first.request_s + (last.request_s - first.request_s) * (b - a) / (c - a)
    return middle.request_s > 0.9 * expected


def bends(curve: list[tuple[int, Point]]) -> bool:
    """Whether the largest of three rungs or more is slower than the line through two below it.

    Memory that spills unseen bends the curve somewhere between.
    """
    if len(curve) < 3:
        return False
    (a, first), (b, second), (c, last) = curve[-3:]
    slope = (second.request_s - first.request_s) / (b - a)
    expected = second.request_s + slope * (c - b)
    widths = [p.request.half_width for p in (second, last) if p.request is not None]
    return last.request_s - expected > max(BEND_FRAC * expected, math.hypot(*widths))


def _dip(curve: list[tuple[int, Point]], ladder: tuple[Rung, ...]) -> int | None:
    """Return the unmeasured rung where the curve may dip below all that is measured.

    What falls rung by rung until memory spills unseen and rises from there is never below either
    line, continued: the rung is where the higher of the two is least.
    """
    if not curve:
        return None
    index, best = min(curve, key=lambda c: c[1].request_s)
    layers = ladder[index].n_gpu_layers
    experts = ladder[index].n_cpu_moe
    # a line never goes on from layers to experts
    on_line = [
        (i, p)
        for i, p in curve
        if ladder[i].n_cpu_moe == experts or ladder[i].n_gpu_layers == layers
    ]
    found: list[tuple[float, int]] = []
    for (a, _), (b, _) in pairwise(on_line):
        if index not in (a, b) or b - a < 2:
            continue
        left = [c for c in on_line if c[0] <= a][-2:]
        right = [c for c in on_line if c[0] >= b][:2]
        if len(left) < 2 or (len(right) < 2 and left[0][0] == 0):
            continue  # the CPU alone reads prompts its own way: no line by itself
        found += [(max(_line(left, k), _line(right, k)), k) for k in range(a + 1, b)]
    time_s, rung = min(found, default=(math.inf, 0))
    noise = best.request.half_width if best.request is not None else 0.0
    return rung if best.request_s - time_s > max(BEND_FRAC * best.request_s, noise) else None


def _line(points: list[tuple[int, Point]], index: int) -> float:
    """Return the seconds at ``index`` on the line through two ``points``; nothing for fewer."""
    if len(points) < 2:
        return -math.inf
    (a, first), (b, second) = points
    return first.request_s + (second.request_s - first.request_s) * (index - a) / (b - a)


def probe_workload(s: Search) -> Workload:
    """Return a few tokens in an empty context."""
    return msgspec.structs.replace(PROBE, n_seq=s.plan.workload.n_seq)
