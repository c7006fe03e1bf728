"""The order of the stages: which questions a search asks, one after the other.

To save loads, context-level knobs are tuned on a placement while its weights are there, and
the references are taken between: the stages of the plan interleave.
"""

import msgspec

from app.domain.settings import LoadMode, Settings
from app.sweep import devices, knobs, layers, trade
from app.sweep.climb import climb
from app.sweep.context import context_curve, longest_context
from app.sweep.finals import finals
from app.sweep.ladder import Rung, rung_of
from app.sweep.points import Point
from app.sweep.search import Asking, Search
from app.sweep.slight_spill import smaller_batches
from app.sweep.soak import soak
from app.sweep.speed_model import mapped
from app.sweep.start import base_settings, device_groups, kind_of

CPU_SHARE = 0.04  # of the time budget: what the CPU may take before the finals if it cannot lead
CPU_IN_REACH = 1.3  # the CPU's own threads are tried when it is within this factor of the best
MIDDLE = 0.6  # of the way up: where the curve's shape shows best
BIG_BATCH = 2048
ODD = 1.2  # how much faster than the top something smaller must be to be suspicious
CPU_DECODES_FASTER = 1.15  # nearly as fast counts too: the whole card is left for large batches


def script(s: Search) -> Asking[None]:
    """Ask the whole search."""
    groups = () if s.plan.request.pinned.get("n_gpu_layers") == 0 else device_groups(s.plan)
    if not groups or kind_of(s.plan, groups[0]) == "software":
        # a software device is the CPU posing as one: it has to prove itself first
        yield from _on_cpu(s, base_settings(s.plan, ()))
        for group in () if s.is_quick else groups:
            yield from devices.other_devices(s, group)
    else:
        found = yield from _on_devices(s, groups[0])
        if not found:
            yield from _on_cpu(s, base_settings(s.plan, ()))
        for part in devices.parts(s, groups[0]):
            yield from devices.other_devices(s, part, is_part=True)
        yield from devices.splits(s)
        for group in groups[1:]:
            yield from devices.other_devices(s, group)
    yield from smaller_batches(s)
    yield from knobs.threads_again(s)
    yield from finals(s)
    if groups:
        yield from layers.cpu_reference(s, base_settings(s.plan, groups[0]))
    yield from context_curve(s)
    yield from longest_context(s)
    yield from soak(s)


def _on_devices(s: Search, group: tuple[str, ...]) -> Asking[bool]:
    """Search on ``group``; whether anything could run there."""
    base, ladder = base_settings(s.plan, group), s.ladder
    top = s.bounds.largest(ladder, base)
    if top is None and len(ladder) == 1:
        top = 0  # the user insists on this placement
    if top is None:
        return False
    fits_on_card = top == len(ladder) - 1 > 0 and kind_of(s.plan, group) == "discrete"
    if s.is_quick or not fits_on_card:
        yield from layers.probe(s, ladder[top].of(base))
    found = yield from climb(s, base, ladder, top)
    if found is None:
        return False
    low, at = found
    spare = 1 if s.is_quick else 3
    ladder = s.ladder
    if not s.is_quick:
        yield from _auto_fit(s, base, at)
        ladder = yield from _branch(s, at, spare)
        yield from trade.clear_gain(s, at, s.ladder)
    yield from layers.cpu_look(s, base)
    if _is_strange(s, low):
        # what is wrong there has to be found with few loads
        yield from _middle(s, base, at, s.ladder, low)
    if not s.is_quick:
        # while it is loaded; after the finals where it takes long, cannot lead, nothing is odd
        needed = _cpu_is_near(s) or not _leads(s, s.ladder[low])
        limit_s = layers.CPU_REFERENCE_S if needed else CPU_SHARE * s.budget.max_s
        yield from layers.cpu_reference(s, base, limit_s)
    yield from _prompt_on_device(s, base)
    if s.is_quick and _cpu_may_lead(s):
        yield from layers.cpu_reference(s, base)
    if s.is_quick:
        ladder = yield from _branch(s, at, spare)
    yield from _middle(s, base, at, ladder, low)
    yield from layers.shape(s, base, ladder, 0 if s.is_quick else 1)
    best = s.best()
    if best is not None and not s.bounds.ok(s.ladder[low].of(base)):
        # the largest was no good although nobody said so: what was tuned there tells little
        ladder = yield from _branch(s, best.settings, spare)
    yield from _on_best_rung(s, at)
    yield from _cpu_if_in_reach(s, base)
    yield from _pinned_weights(s, spare - 1)
    yield from _trade(s, at, ladder, spare - 1)
    yield from _pinned_weights(s, 0)  # what leads now may gain more than what led before
    if s.is_quick:
        # with little time the references come last: they hardly ever lead
        yield from layers.auto_fit(s, base)
        yield from layers.cpu_reference(s, base)
    return True


def _auto_fit(s: Search, base: Settings, at: Settings) -> Asking[None]:
    """Measure llama.cpp's own choice; with a GiB left free there, what does not fit at the top."""
    auto = layers.auto_fit_settings(s, base)
    point = yield from layers.auto_fit(s, base)
    if auto is not None and point is not None and s.is_loaded(auto):
        yield from trade.learn_here(s, auto, at)


def _middle(
    s: Search, base: Settings, at: Settings, ladder: tuple[Rung, ...], low: int
) -> Asking[None]:
    """Measure one rung in the middle: the curve's shape, and batches that need more memory."""
    best = s.best()
    if best is not None and best.rung in ladder and ladder is not s.ladder:
        low = ladder.index(best.rung)
    settings = ladder[int(low * MIDDLE)].of(base)
    top = s.point(s.ladder[low].of(base)) if ladder is s.ladder else None
    # the CPU or fewer layers lead: something is wrong at the top, and nobody said what
    is_odd = top is not None and best is not None and best.request_s < top.request_s / ODD
    is_odd = is_odd or _is_strange(s, low)
    if low < 4 or not s.bounds.ok(settings) or (s.is_quick and not is_odd):
        return
    point = yield from s.measure("layers", settings, spare=0 if is_odd else 4)
    if point is not None and s.is_loaded(settings):
        yield from trade.learn_here(s, settings, at)


def _on_best_rung(s: Search, at: Settings) -> Asking[None]:
    """Bring the tuned knobs to the rung that leads, if that is another one."""
    best = s.best()
    if best is None or best.settings.devices != at.devices or best.rung == rung_of(at):
        return
    settings = best.rung.of(at)
    if s.bounds.ok(settings) and not s.is_dominated(settings):
        yield from s.measure("layers", settings, spare=1)


def _branch(s: Search, at: Settings, spare: int) -> Asking[tuple[Rung, ...]]:
    """Return the better ladder of a model with experts: whole layers get one look."""
    if not s.experts:
        return s.layers
    index = s.bounds.largest(s.layers, at)
    if not index or s.layers[index] in s.experts:
        return s.experts
    plain = yield from s.measure("layers", s.layers[index].of(at), spare=spare)
    best = s.best()
    if plain is None or best is None or plain.settings != best.settings:
        return s.experts
    yield from knobs.tune_contexts(s, s.as_asked(plain.settings))
    return s.layers


def _pinned_weights(s: Search, spare: int) -> Asking[None]:
    """Try pinned host weights with what leads."""
    mapped = s.best()
    if mapped is not None:
        yield from trade.pinned_weights(s, mapped.settings, spare)


def _trade(s: Search, at: Settings, ladder: tuple[Rung, ...], spare: int) -> Asking[None]:
    """Weigh batch and KV type against layers, with the load mode that leads."""
    best = s.best()
    if best is not None and best.settings.devices == at.devices:
        at = msgspec.structs.replace(at, load_mode=_worthwhile_load_mode(s, best))
    yield from trade.trade(s, at, ladder, spare)


def _worthwhile_load_mode(s: Search, best: Point) -> LoadMode:
    """Return how ``best`` loads its weights; mapped where copying them gained nothing there."""
    twin = s.points().get(mapped(best.settings))
    if twin is None or best.request_s <= (1 - knobs.LEAST_GAIN_FRAC) * twin.request_s:
        return best.settings.load_mode
    return LoadMode.MMAP


def _prompt_on_device(s: Search, base: Settings) -> Asking[None]:
    """Keep all layers on the CPU, and large batches on the device, where the CPU decodes faster."""
    best = s.best()
    if best is None or s.request_is_pinned("n_gpu_layers"):
        return
    decode_s = s.cpu_decode_s()
    if decode_s is None or decode_s > CPU_DECODES_FASTER * s.shallow_decode_s(best):
        return
    at = msgspec.structs.replace(
        best.settings, n_gpu_layers=0, n_cpu_moe=0, devices=base.devices, n_ubatch=BIG_BATCH
    )
    if s.request_is_pinned("n_ubatch"):
        at = msgspec.structs.replace(at, n_ubatch=base.n_ubatch)
    if trade.may_pin(s, at):
        at = msgspec.structs.replace(at, load_mode=LoadMode.NONE)
    if not s.bounds.ok(at):
        return
    point = yield from s.measure("layers", at, spare=1)
    leader = s.best()
    if point is not None and leader is not None and leader.settings == point.settings:
        yield from knobs.tune(s, point.settings, has_cpu_part=True)


def _cpu_may_lead(s: Search) -> bool:
    """Whether the CPU's first look is better than what the device does in an empty context."""
    best, decode_s = s.best(), s.cpu_decode_s()
    return best is not None and decode_s is not None and decode_s < s.shallow_decode_s(best)


def _cpu_is_near(s: Search) -> bool:
    """Whether the CPU's first look is near what the device does in an empty context."""
    best, decode_s = s.best(), s.cpu_decode_s()
    if best is None or decode_s is None:
        return True
    return decode_s <= CPU_IN_REACH * s.shallow_decode_s(best)


def _leads(s: Search, rung: Rung) -> bool:
    """Whether ``rung`` is the best so far."""
    best = s.best()
    return best is not None and best.rung == rung


def _is_strange(s: Search, low: int) -> bool:
    """Whether the CPU seems faster than everything on the device, with little time to see why."""
    return s.is_quick and low == len(s.ladder) - 1 and _cpu_may_lead(s)


def _cpu_if_in_reach(s: Search, base: Settings) -> Asking[None]:
    """Give the CPU its own knobs when it leads or nearly does."""
    cpu, best = s.point(layers.cpu_settings(base)), s.best()
    if best is None or cpu is None or cpu.request_s > CPU_IN_REACH * best.request_s:
        return
    yield from knobs.tune_threads(s, cpu.settings)
    leader = s.best()
    if leader is not None and not leader.settings.devices:
        yield from knobs.tune(s, cpu.settings, has_cpu_part=True)


def _on_cpu(s: Search, base: Settings) -> Asking[None]:
    """Tune the CPU alone."""
    at = layers.cpu_settings(base)
    if s.point(at) is None:
        yield from layers.probe(s, at)
    if s.is_crawling:
        # there is time for one measurement: let it be that of the best thread count
        at = yield from knobs.tune_threads(s, at)
    point = yield from s.measure("cpu", at, essential=True)
    if point is not None and point.is_clean:
        yield from knobs.tune(s, at, has_cpu_part=True)
