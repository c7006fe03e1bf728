"""The state of one search as its list of trials says it, and what may still be spent.

The stages are generators that ask for trials; ``policy.next_step`` feeds them what is already
measured and hands out the first question that has no answer yet.
"""

from collections.abc import Generator
from typing import TypeVar

import msgspec

from app.domain.outcome import OUTCOMES, Outcome
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import BUDGETS, BudgetName, SweepPlan
from app.domain.trial import Trial, TrialRequest, Workload
from app.sweep.ladder import Bounds, Fits, Rung, expert_ladder, layer_ladder
from app.sweep.pick import best_of
from app.sweep.points import (
    SPILL_BYTES,
    Demand,
    Point,
    build_points,
    demand,
    is_disturbed,
    measured_settings,
    usable,
)
from app.sweep.speed_model import SpeedModel
from app.sweep.stats import seconds_per_token

T = TypeVar("T")
Asking = Generator[TrialRequest, Trial, T]

PROBE_STAGE = "probe"
PROBE = Workload(n_prompt=64, n_gen=16, depth=0)
DECODE_SAMPLE_S = 2.0
MIN_DECODE_TOK = 8
SCREEN_GEN = 32
KNOB_SHARE = 0.6  # of the time budget, when the last knob may begin
QUICK_KNOB_SHARE = 0.4
PARTS = 20  # a slow machine's trial is made cheaper until so many fit the time budget
QUICK_PARTS = 12
BUDGET_USE = 0.96  # a trial may take a little longer than expected
CAUTION = 1.15  # trials take longer than expected more often than shorter
LASTING_CRASHES = ("engine_not_started", "file_lost", "illegal_instruction", "protocol")
UNMEASURED_RUNG_FACTOR = 1.5  # a rung with fewer layers than any measured one is slower


class Search:
    """What is known so far, and the one way to ask for more."""

    def __init__(self, plan: SweepPlan, fits: Fits) -> None:
        """Begin with nothing measured."""
        self.plan = plan
        self.bounds = Bounds(fits, plan.request.headroom_bytes)
        self.budget = BUDGETS[plan.request.budget]
        self.is_quick = plan.request.budget is BudgetName.QUICK
        self.is_thorough = plan.request.budget is BudgetName.THOROUGH
        self.demand: Demand = demand(plan)
        self.layers: tuple[Rung, ...] = layer_ladder(plan.request, plan.space)
        self.experts: tuple[Rung, ...] = expert_ladder(plan.request, plan.space)
        self.trials: list[Trial] = []
        self.is_cut = False
        self._good: dict[str, int] = {}
        self._bad: dict[str, int] = {}
        self._exact: dict[str, int] = {}
        self.trusts_growth = True

    @classmethod
    def of(cls, plan: SweepPlan, fits: Fits, trials: tuple[Trial, ...]) -> "Search":
        """Return a search that knows ``trials``."""
        search = cls(plan, fits)
        for trial in trials:
            search._note(trial)
        return search

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
    def loads_left(self) -> int:
        """Loads the budget still allows."""
        return self.budget.max_loads - self.n_loads

    @property
    def seconds_left(self) -> float:
        """Seconds the budget still allows."""
        return BUDGET_USE * self.budget.max_s - self.elapsed_s

    @property
    def n_memory_failures(self) -> int:
        """Launches that ran out of memory."""
        failed = {t.load_id for t in self.trials if _is_memory_failure(t)}
        return len(failed)

    def points(self) -> dict[Settings, Point]:
        """Return every configuration timed at the goal's depth."""
        found = build_points(self.trials, self.workload, self.demand)
        if not self.plan.request.pinned:
            return found
        mark = msgspec.structs.replace
        return {
            s: p if self._keeps_pins(s) else mark(p, is_reference=True) for s, p in found.items()
        }

    def _keeps_pins(self, settings: Settings) -> bool:
        """Whether ``settings`` are what the user pinned (the references are not)."""
        wanted = dict(self.plan.request.pinned)
        if "n_ctx" in wanted:
            wanted["n_ctx"] = self.plan.n_ctx
        if not self.plan.space.model.n_expert:
            wanted.pop("n_cpu_moe", None)
        if wanted.get("flash_attn") == FlashAttn.AUTO:
            del wanted["flash_attn"]
        return all(getattr(settings, name) == value for name, value in wanted.items())

    @property
    def workload(self) -> Workload:
        """What a trial times: the plan's, made cheaper where the first probe was slow."""
        for trial in self.trials:
            if trial.request.stage == PROBE_STAGE and usable(trial):
                speed = fastest(trial)
                limit_s = self.budget.max_s / (QUICK_PARTS if self.is_quick else PARTS)
                return affordable(self.plan.workload, speed, limit_s)
        return self.plan.workload

    @property
    def screen(self) -> Workload:
        """The cheap workload: empty cache, short answer."""
        n_gen = min(SCREEN_GEN, self.workload.n_gen)
        return msgspec.structs.replace(self.workload, depth=0, n_gen=n_gen)

    def answered(self, settings: Settings, workload: Workload) -> Trial | None:
        """Return the last trial of exactly this kind."""
        same = (t for t in reversed(self.trials) if t.request.settings == settings)
        return next((t for t in same if t.request.workload == workload), None)

    def screened(self, settings: Settings) -> Point | None:
        """Return what the cheap workload says about ``settings``."""
        return self._find(settings, build_points(self.trials, self.screen, self.demand))

    def may_screen(self, settings: Settings) -> bool:
        """Whether knobs may still take time: the rest of the search keeps its share."""
        used = self.elapsed_s / self.budget.max_s
        share = QUICK_KNOB_SHARE if self.is_quick else KNOB_SHARE
        return used < share and self.may_spend(settings, self.screen, 3)

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
        """Return the configuration that leads."""
        return best_of(self.points().values())

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

    def model(self, ladder: tuple[Rung, ...]) -> SpeedModel:
        """Return the speed model on ``ladder``."""
        screened = build_points(self.trials, self.screen, self.demand)
        devices = max((t.request.settings.devices for t in self.trials), key=len, default=())
        base = Settings(
            n_gpu_layers=0, n_ctx=self.plan.n_ctx, devices=devices, n_seq_max=self.workload.n_seq
        )

        def rung_bytes(index: int) -> int | None:
            need = self.bounds.need(ladder[index].of(base))
            return None if need.note else sum(need.device_bytes().values())

        return SpeedModel(
            self.points().values(), screened.values(), ladder, self.demand, rung_bytes
        )

    def is_loaded(self, settings: Settings) -> bool:
        """Whether the last trial left the weights of ``settings`` in place."""
        if not self.trials:
            return False
        last = self.trials[-1]
        alive = OUTCOMES[last.outcome].has_speed
        return alive and last.request.settings.load_key == settings.load_key

    def is_dominated(self, settings: Settings) -> bool:
        """Whether a smaller need has already run out of memory."""
        need = self.bounds.need(settings).device_bytes()
        for trial in self.trials:
            if not _is_memory_failure(trial):
                continue
            failed = self.bounds.need(trial.request.settings).device_bytes()
            if failed and all(need.get(d, 0) >= n for d, n in failed.items()):
                return True
        return False

    # --- what it costs -------------------------------------------------------------------

    def expected_s(self, settings: Settings, workload: Workload, reps: int) -> float:
        """Return the seconds a trial will take, as far as the trials so far tell."""
        load_s = 0.0 if self.is_loaded(settings) else self.load_s()
        speed = self.speed_guess(settings)
        return load_s if speed is None else load_s + timed_s(workload, speed, reps)

    def load_s(self) -> float:
        """Return the seconds of a load: the longest seen, else as planned."""
        seen = [t.load_s for t in self.trials if t.load_s is not None]
        return max(seen, default=self.plan.space.load_s)

    def speed_guess(self, settings: Settings) -> tuple[float, float] | None:
        """Return seconds per token (prefill, decode) of the most similar trial so far."""
        timed = [t for t in self.trials if t.prefill and t.decode]
        if not timed:
            return None

        def distance(trial: Trial) -> tuple[int, int, bool]:
            seen = trial.request.settings
            return (
                abs(seen.n_gpu_layers - settings.n_gpu_layers)
                + abs(seen.n_cpu_moe - settings.n_cpu_moe),
                abs(seen.n_ubatch - settings.n_ubatch),
                trial.request.workload != self.workload,
            )

        nearest = min(timed, key=distance)
        fewer = settings.n_gpu_layers < nearest.request.settings.n_gpu_layers
        factor = UNMEASURED_RUNG_FACTOR if fewer else 1.0
        prefill_s, decode_s = fastest(nearest)
        smaller_batch = max(1.0, nearest.request.settings.n_ubatch / settings.n_ubatch)
        return factor * smaller_batch * prefill_s, factor * decode_s

    def may_spend(
        self, settings: Settings, workload: Workload, reps: int, *, spare: int = 0
    ) -> bool:
        """Whether a trial fits the budget and leaves ``spare`` loads."""
        loads = 0 if self.is_loaded(settings) else 1
        if loads and self.loads_left < loads + spare:
            return False
        return CAUTION * self.expected_s(settings, workload, reps) <= self.seconds_left

    # --- asking --------------------------------------------------------------------------

    def ask(
        self,
        stage: str,
        settings: Settings,
        *,
        workload: Workload | None = None,
        reps: tuple[int, int] = (3, 8),
        max_s: float = 20.0,
        spare: int = 0,
        essential: bool = False,
    ) -> Asking[Trial | None]:
        """Ask for a trial; ``None`` when the budget does not allow it.

        A disturbed trial is repeated once, and so is a crashed one: what killed it may have come
        from outside. ``essential`` marks a trial without which the
        answer is worse: leaving it out makes the search ``budget_reached``.
        """
        work = workload or self.workload
        if not self.may_spend(settings, work, reps[0], spare=spare):
            self.is_cut = self.is_cut or essential
            return None
        fixed_s = self.expected_s(settings, work, 0)
        request = TrialRequest(
            stage=stage,
            settings=settings,
            workload=work,
            min_reps=reps[0],
            max_reps=reps[1],
            max_s=round(max(0.0, min(max_s, self.seconds_left - fixed_s)), 1),
        )
        trial = yield from self._ask_once(request)
        again = is_disturbed(trial) or self._may_be_chance(trial)
        if again and self.may_spend(settings, work, reps[0], spare=spare):
            trial = yield from self._ask_once(request)
        return trial

    def measure(
        self,
        stage: str,
        settings: Settings,
        *,
        reps: tuple[int, int] = (3, 8),
        max_s: float = 20.0,
        spare: int = 0,
        essential: bool = False,
    ) -> Asking[Point | None]:
        """Return the point of ``settings``, measured now unless it is known already."""
        known = self.point(settings)
        if known is not None:
            return known
        trial = yield from self.ask(
            stage, settings, reps=reps, max_s=max_s, spare=spare, essential=essential
        )
        return None if trial is None else self.points().get(measured_settings(trial))

    def _may_be_chance(self, trial: Trial) -> bool:
        """Whether ``trial`` crashed in a way that need not happen again.

        Where a repetition crashed before, it is the engine: no other trial is repeated.
        """
        if trial.outcome is not Outcome.CRASHED:
            return False
        if trial.error is not None and trial.error.code in LASTING_CRASHES:
            return False
        crashed = [
            (t.request.settings, t.request.workload)
            for t in self.trials
            if t.outcome is Outcome.CRASHED
        ]
        return len(crashed) == len(set(crashed))

    def _ask_once(self, request: TrialRequest) -> Asking[Trial]:
        trial = yield request
        self._note(trial)
        return trial

    def _note(self, trial: Trial) -> None:
        """Remember ``trial`` and lower the bound where memory proved less than reported."""
        self.trials.append(trial)
        need = self.bounds.need(trial.request.settings).device_bytes()
        growth = trial.shared_growth_bytes or 0
        if _is_memory_failure(trial) or (growth > SPILL_BYTES and not self.trusts_growth):
            self.reject(need)
        elif growth > SPILL_BYTES:
            # what did not fit went to shared memory: the rest is what there is, exactly
            room = {d: n - growth + SPILL_BYTES for d, n in need.items()}
            self._exact = {d: min(n, self._exact.get(d, n)) for d, n in room.items()}
            self._set_ceiling()
        elif usable(trial):
            if any(need.get(d, 0) > n for d, n in self._exact.items()):
                self._distrust_growth()
            self._good = {d: max(n, self._good.get(d, 0)) for d, n in need.items()}
            self._set_ceiling()

    def _distrust_growth(self) -> None:
        """More ran clean than growth of shared memory left room for: what spilled only bounds."""
        self.trusts_growth, self._exact = False, {}
        for trial in self.trials:
            if (trial.shared_growth_bytes or 0) > SPILL_BYTES:
                self.reject(self.bounds.need(trial.request.settings).device_bytes())

    def reject(self, need: dict[str, int]) -> None:
        """Note that ``need`` bytes per device are too many, whatever the devices report."""
        self._bad = {d: min(n, self._bad.get(d, n)) for d, n in need.items()}
        self._set_ceiling()

    def _set_ceiling(self) -> None:
        """Between what ran and what did not: half way while one more failure is acceptable."""
        daring = 0.0 if self.n_memory_failures > 1 else 0.5
        ceiling: dict[str, float] = {}
        for device, n_bytes in self._bad.items():
            good = self._good.get(device, 0)
            ceiling[device] = good + (n_bytes - good) * daring if good else n_bytes - 1
        for device, n_bytes in self._exact.items():
            ceiling[device] = min(n_bytes, ceiling.get(device, n_bytes))
        self.bounds.ceiling = ceiling


def timed_s(workload: Workload, speed: tuple[float, float], reps: int) -> float:
    """Return the seconds of filling, warm-ups and ``reps`` passes at ``speed`` (s per token)."""
    prefill_s, decode_s = speed
    decode = min(workload.n_gen * decode_s, max(DECODE_SAMPLE_S, MIN_DECODE_TOK * decode_s))
    prompt = workload.n_prompt * prefill_s
    fill = workload.depth * prefill_s
    return fill + 2 * prompt + MIN_DECODE_TOK * decode_s + reps * (prompt + decode)


def affordable(workload: Workload, speed: tuple[float, float], limit_s: float) -> Workload:
    """Return ``workload``, made shallower and shorter until three passes take ``limit_s``."""
    while timed_s(workload, speed, 3) > limit_s:
        if workload.depth > workload.n_prompt:
            workload = msgspec.structs.replace(workload, depth=workload.depth // 2)
        elif workload.n_prompt > 64:
            workload = msgspec.structs.replace(workload, n_prompt=workload.n_prompt // 2)
        elif workload.depth:
            workload = msgspec.structs.replace(workload, depth=0)
        else:
            break
    return workload


def fastest(trial: Trial) -> tuple[float, float]:
    """Return the least seconds per token (prefill, decode) of a trial's passes."""
    return min(seconds_per_token(trial.prefill)), min(seconds_per_token(trial.decode))


def _is_memory_failure(trial: Trial) -> bool:
    info = OUTCOMES[trial.outcome]
    return info.is_memory and not info.has_speed
