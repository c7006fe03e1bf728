"""The wizard: leads from a model to its best settings, or gets there in one click."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedWidget, QWidget
from typing_extensions import override

from app.domain.errors import ErrorInfo
from app.domain.events import TrialStarted
from app.domain.model import ModelSpec
from app.domain.sweep import Goal, SweepPlan, SweepRequest, SweepResult
from app.domain.units import MIB
from views.bridge import Jobs, Latest
from views.page import MIN_UNITS, SCROLLED_UNITS, Page
from views.port import SessionPort
from views.power.caps_card import CapsCard
from views.results.exporter import Exporter
from views.results.result_view import ResultView
from views.widgets import Kit
from views.wizard.goal_step import GoalStep
from views.wizard.model_step import ModelStep
from views.wizard.plan_step import PlanStep
from views.wizard.run_step import RunStep
from views.wizard.runner import SearchRunner
from views.wizard.steps import StepLine
from views.wizard.unfinished import Unfinished
from views.words import error_text, sentence, status_label

if TYPE_CHECKING:
    from app.session import Estimate
    from app.store.records import StoredSweep


class WizardSteps(NamedTuple):
    """The pages of the wizard, built one by one before it."""

    model: ModelStep
    goal: GoalStep
    plan: PlanStep
    run: RunStep
    result: ResultView


class WizardPage(Page):
    """Model, goal, plan, measure, result.

    Signals:
        chat_requested: Model and profile.
        apply_requested: Model and profile.
        search_started: Model; memory is needed from now on.
        search_told: What it came to or waits for, for who does not see the window.
        loaded_changed: ``DeviceMemory`` of what a trial loads; empty = nothing is loaded.
    """

    chat_requested = Signal(str, str)
    apply_requested = Signal(str, str)
    search_started = Signal(str)
    search_told = Signal(str)
    loaded_changed = Signal(object)

    def __init__(self, kit: Kit, session: SessionPort, jobs: Jobs, steps: WizardSteps) -> None:
        """Put ``steps`` together."""
        super().__init__(kit, "")
        self.title.setText(self.tr("Find best settings"))
        self._session = session
        self._jobs = jobs
        self._model = ""
        self._name = ""
        self._spec: ModelSpec | None = None
        self._request = SweepRequest()
        self._is_quick = False
        self._has_list = False
        self._wanted_goal: Goal | None = None
        self.runner = SearchRunner(session, jobs, self)
        self._estimates = Latest(jobs, "estimate", self)
        self._loads = Latest(jobs, "estimate", self)
        self._loads.result_arrived.connect(self._on_load_estimate)
        self.unfinished = Unfinished(session, jobs, steps.model.banner, self)
        self._earlier: int | None = None
        self.line = StepLine(kit)
        self.body.addWidget(self.line)
        self.model_step = steps.model
        self.goal_step = steps.goal
        self.plan_step = steps.plan
        self.run_step = steps.run
        self.result_step = steps.result
        Exporter(self.result_step, session, jobs)
        self.caps = CapsCard(kit, session, jobs)
        self.caps.hide()
        self.result_step.append(self.caps)
        self._again = kit.button(self.tr("New Search"), "new")
        self.result_step.action_row.insert_widget(0, self._again)
        self._steps: dict[str, QWidget] = {
            "model": self.model_step, "goal": self.goal_step, "plan": self.plan_step,
            "run": self.run_step, "result": self.result_step,
        }  # fmt: skip
        self._stack = QStackedWidget()
        self.body.addWidget(self._stack, 1)
        self.step = "model"
        self._connect()

    def placing(self) -> list[Callable[[], object]]:
        """Return the calls that put the steps on the page, to be made one per turn.

        In a window each widget takes the look at once: all five steps together would hold it.
        """
        return [partial(self._stack.addWidget, step) for step in self._steps.values()]

    def _connect(self) -> None:
        self.model_step.model_chosen.connect(self.choose_model)
        self.model_step.quick_requested.connect(self.start_quick)
        self.model_step.refresh_requested.connect(self.refresh_models)
        self.unfinished.go_on_requested.connect(self._on_go_on_requested)
        self.goal_step.back_requested.connect(partial(self._show, "model"))
        self.goal_step.plan_requested.connect(self._on_plan_requested)
        self.goal_step.estimate_requested.connect(self._on_estimate_requested)
        self.plan_step.back_requested.connect(self._on_back_to_goal)
        self.plan_step.start_requested.connect(self._on_start_requested)
        self.run_step.stop_requested.connect(self._on_stop_requested)
        self.run_step.go_on_requested.connect(self.runner.go)
        self.result_step.chat_requested.connect(self._on_chat_requested)
        self.result_step.apply_requested.connect(self._on_apply_requested)
        self.result_step.search_requested.connect(self._on_other_goal)
        self._again.clicked.connect(lambda: self._show("model"))
        self.caps.started.connect(lambda: self.search_started.emit(self._model))
        self.runner.planned.connect(self._on_planned)
        self.runner.trial_started.connect(self.run_step.show_trial_started)
        self.runner.trial_started.connect(self._on_trial_started)
        self.runner.progressed.connect(self.run_step.show_progress)
        self.runner.trial_finished.connect(self.run_step.show_trial_finished)
        self.runner.paused.connect(self._on_search_paused)
        self.runner.finished.connect(self._on_finished)
        self.runner.failed.connect(self._on_search_failed)
        self.runner.ended.connect(self._on_search_ended)
        self._estimates.result_arrived.connect(self._on_estimate)
        self._estimates.failed.connect(self.goal_step.estimate.show_problem)

    def _show(self, step: str) -> None:
        self.step = step
        self.line.show_step(step)
        self._stack.setCurrentWidget(self._steps[step])
        self.lay_out_for(MIN_UNITS if step in ("model", "run") else SCROLLED_UNITS)

    @Slot()
    def refresh_models(self) -> None:
        """Look for models again."""
        self._has_list = True
        folders = self.kit.options.value.model_folders
        job = self._jobs.call("models", partial(self._session.models, folders))
        job.event_arrived.connect(self.model_step.show_models)
        job.failed.connect(self.model_step.banner.show_error)

    def forget_models(self) -> None:
        """Look for models anew the next time the page shows: the folders have changed."""
        self._has_list = False
        if self.isVisible():
            self.refresh_models()

    @Slot(str)
    def choose_model(self, model: str, goal: Goal | None = None) -> None:
        """Read ``model`` and go on to the goal; a plan on screen is dropped for it.

        While a search is measured nothing happens: it has to be stopped first. One that was
        stopped and still ends does not matter, because reading a file needs no engine.
        """
        if self.step == "run":
            return
        if self.step == "plan":
            self.runner.drop()
            self._show("model")
        self._model = model
        self._wanted_goal = goal
        job = self._jobs.call("inspect", partial(self._session.inspect, model))
        job.event_arrived.connect(self._on_spec)
        job.failed.connect(self._on_model_failed)

    @Slot(str)
    def start_quick(self, model: str) -> None:
        """Search ``model`` for chat, without a further question."""
        if self.runner.is_running:
            return
        self._model = model
        self._is_quick = True
        headroom = self.kit.options.value.headroom_mib * MIB
        self._start_plan(SweepRequest(headroom_bytes=headroom or None))

    @Slot(object)
    def _on_go_on_requested(self, sweep: "StoredSweep") -> None:
        if not self.runner.is_running:
            self._model = sweep.model_path
            self._is_quick = True
            self._start_plan(sweep.request, sweep.id)

    @Slot(object)
    def _on_spec(self, spec: ModelSpec) -> None:
        if self.step in ("plan", "run"):
            return  # a search has begun since
        self._spec = spec
        self.model_step.banner.hide()
        if self._wanted_goal is not None:
            self.goal_step.goals.choose(self._wanted_goal)
        self.goal_step.show_model(spec)
        self._show("goal")
        self.goal_step.next.setFocus()

    @Slot(object)
    def _on_model_failed(self, error: ErrorInfo) -> None:
        self._show("model")
        self.model_step.banner.show_error(error)

    @Slot(int)
    def _on_estimate_requested(self, n_ctx: int) -> None:
        if self._spec is not None:
            self._estimates.submit(partial(_estimate, self._session, self._spec, n_ctx))

    @Slot(object)
    def _on_estimate(self, estimate: "Estimate") -> None:
        if self._spec is not None:
            self.goal_step.show_estimate(estimate, self._spec)

    @Slot()
    def _on_plan_requested(self) -> None:
        self._is_quick = False
        self._start_plan(self.goal_step.request())

    def _start_plan(self, request: SweepRequest, earlier: int | None = None) -> None:
        """Plan ``request``; ``earlier`` = number of the search to go on with."""
        if self.runner.is_running:
            return
        self._request, self._earlier = request, earlier
        self.unfinished.forget()
        self.plan_step.show_waiting()
        self._show("plan")
        # Before the plan: what the chat's model holds would count as memory in use.
        self.search_started.emit(self._model)
        self.model_step.set_quick_model(self._model)
        self._set_busy(True)
        self.runner.start(self._model, request, resume=earlier is not None)

    def _set_busy(self, is_busy: bool) -> None:  # noqa: FBT001
        self.goal_step.set_busy(is_busy)
        self.model_step.quick.setEnabled(not is_busy)

    @Slot(object)
    def _on_planned(self, plan: SweepPlan) -> None:
        self._name = plan.space.model.name
        self.plan_step.show_plan(plan)
        self._plan = plan
        if self._earlier is not None and "resumed" not in plan.notes:
            self._earlier = None  # the plan says what has changed; the user decides
        elif self._is_quick:
            self._on_start_requested()

    @Slot()
    def _on_start_requested(self) -> None:
        self.run_step.begin(self._plan)
        if self._earlier is not None:
            self.unfinished.fetch(self._earlier, self.run_step.show_earlier)
        self._show("run")
        self.runner.go()

    @Slot()
    def _on_stop_requested(self) -> None:
        self.run_step.show_stopping()
        self.runner.stop()

    @Slot(object)
    def _on_finished(self, result: SweepResult) -> None:
        self.run_step.end()
        self.result_step.show_result(result, self._name, self._request.floor_tok_s)
        self._offer_caps(result)
        self._show("result")
        self.result_step.chat.setFocus()
        text = self.tr("The search of {model} has ended: {status}.")
        self.search_told.emit(text.format(model=self._name, status=status_label(result.status)))

    @Slot(str)
    def _on_search_paused(self, code: str) -> None:
        self.run_step.show_paused(code)
        text = self.tr("The search waits for you. {why}")
        self.search_told.emit(text.format(why=sentence("note", code, {})))

    def _offer_caps(self, result: SweepResult) -> None:
        point = result.recommended
        self.caps.setVisible(self._request.goal is Goal.QUIET and point is not None)
        if point is not None:
            self.caps.offer(self._model, point.settings)

    @Slot(object)
    def _on_search_failed(self, error: ErrorInfo) -> None:
        self.run_step.end()
        self.search_told.emit(error_text(error))
        if self._is_quick or self._spec is None:
            self._on_model_failed(error)
        else:
            self._show("goal")
            self.goal_step.banner.show_error(error)

    @Slot()
    def _on_search_ended(self) -> None:
        self._set_busy(False)
        self.loaded_changed.emit(())
        if self.step == "run":
            # Stopped before anything was measured: there is no result to show.
            self.run_step.end()
            self._on_back_to_goal()

    @Slot()
    def _on_back_to_goal(self) -> None:
        self.runner.drop()
        self._show("model" if self._is_quick else "goal")

    @Slot(str)
    def _on_chat_requested(self, profile_id: str) -> None:
        self.chat_requested.emit(self._model, profile_id)

    @Slot(object)
    def _on_trial_started(self, event: TrialStarted) -> None:
        # What the trial needs, part by part, for the dashboard's memory map.
        if self._spec is not None:
            settings = event.request.settings
            self._loads.submit(partial(self._session.estimate, self._spec, settings))

    @Slot(object)
    def _on_load_estimate(self, estimate: "Estimate") -> None:
        if self.runner.is_running:
            self.loaded_changed.emit(estimate.estimate.devices)

    @Slot(str)
    def _on_apply_requested(self, profile_id: str) -> None:
        self.apply_requested.emit(self._model, profile_id)

    @Slot(object)
    def _on_other_goal(self, goal: Goal) -> None:
        self.choose_model(self._model, goal)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._has_list:
            self.refresh_models()
            self.unfinished.look()


def _estimate(session: SessionPort, spec: ModelSpec, n_ctx: int) -> "Estimate":
    return session.estimate(spec, session.default_settings(spec, n_ctx))
