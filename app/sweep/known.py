"""What is known of one search, as its list of trials says it."""

from typing import Self

import msgspec

from app.domain.outcome import OUTCOMES
from app.domain.settings import FlashAttn, LoadMode, Settings
from app.domain.sweep import BUDGETS, BudgetName, SweepPlan
from app.domain.trial import Trial, Workload
from app.sweep.cost import affordable, fastest, timed_s
from app.sweep.kin import share_decode
from app.sweep.ladder import Bounds, Fits, Rung, expert_ladder, layer_ladder, rung_of
from app.sweep.line import straighten
from app.sweep.pick import best_of, pick
from app.sweep.points import (
    SPILL_BYTES,
    Demand,
    Point,
    build_points,
    demand,
    usable,
)
from app.sweep.proven import Proven
from app.sweep.speed_model import family_of, mapped
from app.sweep.stats import stdev

PROBE_STAGE = "probe"
SCREEN_GEN = 32
PARTS = 20  # a slow machine's trial is made cheaper until so many fit the time budget
QUICK_PARTS = 12
MOST_FAILURES = 2  # launches that may run out of memory


class Known:
    """What the trials so far say."""

    def __init__(self, plan: SweepPlan, fits: Fits) -> None:
        """Begin with nothing measured."""
        self.plan = plan
        self.bounds = Bounds(fits, plan.request.headroom_bytes)
        self.budget = BUDGETS[plan.request.budget]
        self.is_quick = plan.request.budget is BudgetName.QUICK
        self.is_thorough = plan.request.budget is BudgetName.THOROUGH
        self._part_s = self.budget.max_s / (QUICK_PARTS if self.is_quick else PARTS)
        self.demand: Demand = demand(plan)
        self.layers: tuple[Rung, ...] = layer_ladder(plan.request, plan.space)
        self.experts: tuple[Rung, ...] = expert_ladder(plan.request, plan.space)
        self.trials: list[Trial] = []
        self.proven = Proven()
        self._built: dict[Workload, tuple[int, dict[Settings, Point]]] = {}

    @classmethod
    def of(cls, plan: SweepPlan, fits: Fits, trials: tuple[Trial, ...]) -> Self:
        """Return what ``trials`` say."""
        known = cls(plan, fits)
        for trial in trials:
            known.note(trial)
        return known

    # --- what is known -------------------------------------------------------------------

    @property
    def ladder(self) -> tuple[Rung, ...]:
        """The placements to climb: expert layers where the model has experts."""
        return self.experts or self.layers

    @property
    def n_loads(self) -> int:
        """Loads of weights so far, failed ones included."""
        return len({t.load_id for t in self.trials})

    @property
    def elapsed_s(self) -> float:
        """Seconds spent in trials so far, on the rig's clock."""
        return sum(t.elapsed_s for t in self.trials)

    @property
    def n_memory_failures(self) -> int:
        """Launches that ran out of memory."""
        failed = {t.load_id for t in self.trials if _is_memory_failure(t)}
        return len(failed)

    def points(self) -> dict[Settings, Point]:
        """Return every configuration timed at the goal's depth."""
        found = self._timed(self.workload)
        mark = msgspec.structs.replace
        return {s: p if self.may_win(s) else mark(p, is_reference=True) for s, p in found.items()}

    def may_win(self, settings: Settings) -> bool:
        """Whether ``settings`` are what the user asked for: references need not be."""
        is_asked = self._keeps_pins(settings) and self._keeps_types(settings)
        return is_asked and self._leaves_room(settings)

    def _leaves_room(self, settings: Settings) -> bool:
        """Whether what the user wants left free stays free (a pinned placement is insisted on)."""
        request = self.plan.request
        if request.headroom_bytes is None and not request.reserve_bytes:
            return True
        is_pinned = not {"n_gpu_layers", "n_cpu_moe"}.isdisjoint(request.pinned)
        if is_pinned or settings.n_gpu_layers == 0:
            return True
        return self.bounds.leaves_room(settings)

    def _keeps_pins(self, settings: Settings) -> bool:
        """Whether ``settings`` are what the user pinned (the references are not)."""
        wanted = dict(self.plan.request.pinned)
        if "n_ctx" in wanted:
            wanted["n_ctx"] = self.plan.n_ctx
        if not self.plan.space.model.n_expert or wanted.get("n_gpu_layers") == 0:
            wanted.pop("n_cpu_moe", None)
        if wanted.get("flash_attn") == FlashAttn.AUTO:
            del wanted["flash_attn"]
        return all(getattr(settings, name) == value for name, value in wanted.items())

    def _keeps_types(self, settings: Settings) -> bool:
        """Whether the user allows the cache types (llama.cpp's own choice may have others)."""
        request = self.plan.request
        chosen = {"type_k", "type_v"}.difference(request.pinned)
        return all(getattr(settings, name) in (request.kv_types or ("f16",)) for name in chosen)

    @property
    def workload(self) -> Workload:
        """What a trial times: the plan's, made cheaper where the first probe was slow."""
        probe, planned = self._probe(), self.plan.workload
        return affordable(planned, fastest(probe), self._part_s) if probe else planned

    @property
    def is_crawling(self) -> bool:
        """Whether the CPU alone takes too long for even the cheapest workload, with little time."""
        probe = self._probe() if self.is_quick else None
        if probe is None or probe.request.settings.devices:
            return False
        return timed_s(self.workload, fastest(probe), 3) > self._part_s

    def _probe(self) -> Trial | None:
        return next((t for t in self.trials if t.request.stage == PROBE_STAGE and usable(t)), None)

    @property
    def screen(self) -> Workload:
        """The cheap workload: empty cache, short answer; as short as the probe where it crawls."""
        if self.is_crawling and (probe := self._probe()):
            return probe.request.workload
        n_gen = min(SCREEN_GEN, self.workload.n_gen)
        return msgspec.structs.replace(self.workload, depth=0, n_gen=n_gen)

    def answered(self, settings: Settings, workload: Workload) -> Trial | None:
        """Return the last trial of exactly this kind."""
        same = (t for t in reversed(self.trials) if t.request.settings == settings)
        return next((t for t in same if t.request.workload == workload), None)

    def screened(self, settings: Settings) -> Point | None:
        """Return what the cheap workload says about ``settings``."""
        return self._find(settings, self.screens())

    def looked_at(self, settings: Settings, workload: Workload) -> Point | None:
        """Return what ``workload`` says about ``settings``."""
        return self._find(settings, self._timed(workload))

    def noise_frac(self) -> float:
        """Return the relative standard deviation of one pass, pooled over the points."""
        parts = [(len(p.times) - 1, stdev(p.times) / p.request_s) for p in self._scattered()]
        n = sum(count for count, _ in parts)
        return (sum(count * frac**2 for count, frac in parts) / n) ** 0.5 if n else 0.0

    def _scattered(self) -> list[Point]:
        """Return the points with passes enough to tell how they scatter."""
        return [p for p in self.points().values() if len(p.times) > 2 and not p.disturbed]

    def is_screened(self, knobs: Settings) -> bool:
        """Whether the cheap workload ran with the attention and cache of ``knobs``."""
        wanted = (family_of(knobs).flash_attn, knobs.type_k, knobs.type_v)
        return any((family_of(s).flash_attn, s.type_k, s.type_v) == wanted for s in self.screens())

    def knows_copied(self) -> bool:
        """Whether copied and mapped weights were both timed with the same knobs and placement."""
        seen = {p.settings for p in self.clean() if p.settings.devices}
        return any(s.load_mode is LoadMode.NONE and mapped(s) in seen for s in seen)

    def screens(self) -> dict[Settings, Point]:
        """Return every configuration timed with the cheap workload."""
        return self._timed(self.screen)

    def _timed(self, workload: Workload) -> dict[Settings, Point]:
        """Return every configuration timed with ``workload``; worked out once per trial."""
        n, points = self._built.get(workload, (-1, {}))
        if n != len(self.trials):
            points = build_points(self.trials, workload, self.demand)
            points = share_decode(points, self.demand)
            alone = [p.decode_s for p in points.values() if p.is_clean and not p.settings.devices]
            cpu_decode_s = min(alone, default=self.cpu_decode_s())
            n_blocks = self.plan.space.model.n_layer
            points = straighten(points, self.demand, n_blocks, cpu_decode_s)
            self._built[workload] = (len(self.trials), points)
        return points

    def point(self, settings: Settings) -> Point | None:
        """Return what is known about ``settings``."""
        return self._find(settings, self.points())

    def _find(self, settings: Settings, points: dict[Settings, Point]) -> Point | None:
        if settings.flash_attn is not FlashAttn.AUTO:
            return points.get(settings)
        for choice in FlashAttn:
            asked = msgspec.structs.replace(settings, flash_attn=choice)
            point = points.get(asked)
            if point is not None and any(
                self.trials[i].request.settings == settings for i in point.indices
            ):
                return point
        return None

    def clean(self) -> list[Point]:
        """Return what may win, fastest first."""
        return sorted((p for p in self.points().values() if p.is_clean), key=lambda p: p.request_s)

    def best(self) -> Point | None:
        """Return the configuration that leads: what the next trial has to beat."""
        return pick(self.points().values())

    def answer(self) -> Point | None:
        """Return what would be recommended now, ties resolved."""
        return best_of(self.points().values())

    def shallow_decode_s(self, point: Point) -> float:
        """Return seconds per generated token of ``point`` in an empty context, if timed there."""
        placed = [
            fastest(t)[1]
            for t in self.trials
            if usable(t)
            and not t.request.workload.depth
            and rung_of(t.request.settings) == point.rung
            and t.request.settings.devices == point.settings.devices
        ]
        return min(placed, default=point.decode_s)

    def has_cpu_part(self, settings: Settings) -> bool:
        """Whether decode needs the CPU."""
        return settings.n_gpu_layers <= self.plan.space.model.n_layer or settings.n_cpu_moe > 0

    def as_asked(self, settings: Settings) -> Settings:
        """Return ``settings`` as they were asked for (flash attention may have been ``auto``)."""
        point = self.points().get(settings)
        return settings if point is None else self.trials[point.indices[0]].request.settings

    def request_is_pinned(self, name: str) -> bool:
        """Whether the user fixed the setting ``name``."""
        return name in self.plan.request.pinned

    def cpu_decode_s(self) -> float | None:
        """Return the CPU's seconds per generated token in an empty context, if timed."""
        alone = [
            fastest(t)[1]
            for t in self.trials
            if usable(t) and not t.request.settings.devices and not t.request.workload.depth
        ]
        return min(alone, default=None)

    def is_loaded(self, settings: Settings) -> bool:
        """Whether the last trial left the weights of ``settings`` in place."""
        return bool(self.trials) and leaves_loaded(self.trials[-1], settings)

    def is_dominated(self, settings: Settings) -> bool:
        """Whether a smaller need has already run out of memory.

        After two such launches only what is proven to fit may be launched.
        """
        need = self.bounds.need(settings).device_bytes()
        if self.n_memory_failures >= MOST_FAILURES and self.proven.knows_any(need):
            return not self.proven.holds(need)
        for trial in self.trials:
            if not _is_memory_failure(trial):
                continue
            failed = self.bounds.need(trial.request.settings).device_bytes()
            if any(failed.values()) and all(need.get(d, 0) >= n for d, n in failed.items()):
                return True
        return False

    def total_bytes(self, settings: Settings) -> int:
        """Return the need of ``settings`` over all devices, bytes."""
        return sum(self.bounds.need(settings).device_bytes().values())

    def is_proven(self, settings: Settings) -> bool:
        """Whether as much as ``settings`` needs has already run on every device."""
        need = self.bounds.need(settings)
        return (
            self.proven.holds(need.device_bytes())
            and need.note is None
            and self.bounds.ok(settings)
        )

    def proven_bytes(self, at: Settings) -> tuple[int, int | None]:
        """Return the bytes, on the devices of ``at``, that ran, and those that failed."""
        return self.proven.bracket(self.bounds.need(at).device_bytes())

    @property
    def trusts_growth(self) -> bool:
        """Whether growth of shared memory still tells how much there is."""
        return self.proven.trusts_growth

    def ran_clean(self, trial: Trial) -> bool:
        """Whether ``trial`` ran without shared memory growing."""
        return usable(trial) and (trial.shared_growth_bytes or 0) <= SPILL_BYTES

    def note(self, trial: Trial) -> None:
        """Remember ``trial`` and lower the bound where memory proved less than reported."""
        self.trials.append(trial)
        need = self.bounds.need(trial.request.settings).device_bytes()
        growth = trial.shared_growth_bytes or 0
        if _is_memory_failure(trial) or (growth > SPILL_BYTES and not self.trusts_growth):
            self.proven.failed(need)
        elif growth > SPILL_BYTES:
            self.proven.grew(need, growth)
        elif usable(trial) and self.proven.ran(need):
            # more ran clean than growth left room for: what spilled only bounds
            for spilled in self.trials:
                if (spilled.shared_growth_bytes or 0) > SPILL_BYTES:
                    settings = spilled.request.settings
                    self.proven.failed(self.bounds.need(settings).device_bytes())
        self._set_ceiling()

    def reject(self, need: dict[str, int], kept: dict[str, int]) -> None:
        """Note that ``need`` bytes per device spill unseen, and ``kept`` do not."""
        self.proven.rejected(need, kept)
        self._set_ceiling()

    def _set_ceiling(self) -> None:
        """Half way between what ran and what did not, while one more failure is acceptable."""
        daring = 0.0 if self.n_memory_failures >= MOST_FAILURES else 0.5
        self.bounds.ceiling = self.proven.ceiling(daring)


def _is_memory_failure(trial: Trial) -> bool:
    info = OUTCOMES[trial.outcome]
    return info.is_memory and not info.has_speed


def leaves_loaded(trial: Trial, settings: Settings) -> bool:
    """Whether ``trial`` left the weights of ``settings`` in place."""
    alive = OUTCOMES[trial.outcome].has_speed
    return alive and trial.request.settings.load_key == settings.load_key
