"""What a search may still spend, and the one way to ask for more.

The stages are generators that ask for trials; ``policy.next_step`` feeds them what is already
measured and hands out the first question that has no answer yet.
"""

from collections.abc import Generator
from typing import TypeVar

from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import SweepPlan
from app.domain.trial import Trial, TrialRequest, Workload
from app.sweep.cost import fastest, timed_s
from app.sweep.known import Known
from app.sweep.ladder import Fits
from app.sweep.points import SPILL_BYTES, Point, is_disturbed, measured_settings, usable

T = TypeVar("T")
Asking = Generator[TrialRequest, Trial, T]
Speed = tuple[float, float]  # seconds per token: prefill, decode

ROOM_STAGE = "memory"
KNOB_SHARE = 0.6  # of the time budget, when the last knob may begin
QUICK_KNOB_SHARE = 0.4
BUDGET_USE = 0.96  # a trial may take a little longer than expected
LOOK_COST = 0.5  # a look that takes 4 % of the time must be able to gain 2 %
QUICK_SAMPLE_S = 8.0  # of passes per trial
CAUTION = 1.15  # trials take longer than expected more often than shorter
DISTURBED_FRAC = 1.5  # a disturbance rarely costs more
LASTING_CRASHES = ("engine_not_started", "file_lost", "illegal_instruction", "protocol")
UNMEASURED_RUNG_FACTOR = 1.5  # a rung with fewer layers than any measured one is slower


class Search(Known):
    """What is known so far, and the one way to ask for more."""

    def __init__(self, plan: SweepPlan, fits: Fits) -> None:
        """Begin with nothing measured."""
        super().__init__(plan, fits)
        self.is_cut = False

    @property
    def loads_left(self) -> int:
        """Loads the budget still allows."""
        return self.budget.max_loads - self.n_loads

    @property
    def seconds_left(self) -> float:
        """Seconds the budget still allows."""
        return BUDGET_USE * self.budget.max_s - self.elapsed_s

    def may_screen(self, settings: Settings) -> bool:
        """Whether knobs may still take time: the rest of the search keeps its share."""
        used = self.elapsed_s / self.budget.max_s
        share = QUICK_KNOB_SHARE if self.is_quick else KNOB_SHARE
        return used < share and self.may_spend(settings, self.screen, 3)

    def is_worth_looking(self, settings: Settings, gain_frac: float) -> bool:
        """Whether a look that may gain so much is worth its share of the time."""
        cost_s = self.expected_s(settings, self.screen, 3)
        return gain_frac >= LOOK_COST * cost_s / self.budget.max_s

    def expected_s(self, settings: Settings, workload: Workload, reps: int) -> float:
        """Return the seconds a trial will take, as far as the trials so far tell."""
        load_s = 0.0 if self.is_loaded(settings) else self.load_s()
        speed = self.speed_guess(settings)
        return load_s if speed is None else load_s + timed_s(workload, speed, reps)

    def load_s(self) -> float:
        """Return the seconds of a load: the longest seen, else as planned."""
        seen = [t.load_s for t in self.trials if t.load_s is not None]
        return max(seen, default=self.plan.space.load_s)

    def speed_guess(self, settings: Settings) -> Speed | None:
        """Return seconds per token (prefill, decode) of the most similar trial so far."""
        timed = [t for t in self.trials if t.prefill and t.decode]
        if not timed:
            return None

        def distance(trial: Trial) -> tuple[bool, int, int, bool]:
            seen = trial.request.settings
            return (
                bool(seen.devices) != bool(settings.devices),
                abs(seen.n_gpu_layers - settings.n_gpu_layers)
                + abs(seen.n_cpu_moe - settings.n_cpu_moe),
                abs(seen.n_ubatch - settings.n_ubatch),
                trial.request.workload != self.workload,
            )

        nearest = min(timed, key=distance)
        fewer = settings.n_gpu_layers < nearest.request.settings.n_gpu_layers
        spilled = (nearest.shared_growth_bytes or 0) > SPILL_BYTES
        factor = UNMEASURED_RUNG_FACTOR if fewer and not spilled else 1.0
        prefill_s, decode_s = fastest(nearest)
        smaller_batch = max(1.0, nearest.request.settings.n_ubatch / settings.n_ubatch)
        guess = factor * smaller_batch * prefill_s, factor * decode_s
        return self._towards_spill(settings, timed, guess)

    def _towards_spill(self, settings: Settings, timed: list[Trial], guess: Speed) -> Speed:
        """Return ``guess``, slower the nearer ``settings`` is to what spilled.

        Between what ran clean and what spilled nobody knows where the spill begins.
        """
        needs = [(self.total_bytes(t.request.settings), t) for t in timed]
        need = self.total_bytes(settings)
        clean = max((n for n, t in needs if self.ran_clean(t)), default=0)
        above = [(n, t) for n, t in needs if n >= need > clean and not self.ran_clean(t)]
        if not above:
            return guess
        n_bytes, spilled = min(above, key=lambda a: a[0])
        share = (need - clean) / (n_bytes - clean)
        slow = fastest(spilled)
        return (
            guess[0] + share * max(0.0, slow[0] - guess[0]),
            guess[1] + share * max(0.0, slow[1] - guess[1]),
        )

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
        max_s = min(max_s, QUICK_SAMPLE_S) if self.is_quick else max_s
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
        again = self._is_spoilt(trial) or self._may_be_chance(trial)
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

    def _is_spoilt(self, trial: Trial) -> bool:
        """Whether ``trial`` was disturbed and could lead without that."""
        if not is_disturbed(trial) or self.stays_hot():
            return False
        best = self.best()
        if best is None or not usable(trial) or not trial.request.workload.depth:
            return True  # what a look says is carried over to other placements
        prefill_s, decode_s = fastest(trial)
        time_s = self.demand.n_prompt * prefill_s + self.demand.n_gen * decode_s
        return time_s <= DISTURBED_FRAC * best.request_s

    def stays_hot(self) -> bool:
        """Whether repeating a throttled trial did not help before."""
        hot = [
            (t.request.settings, t.request.workload)
            for t in self.trials
            if t.outcome is Outcome.THROTTLED
        ]
        return len(hot) > len(set(hot))

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
        self.note(trial)
        return trial
