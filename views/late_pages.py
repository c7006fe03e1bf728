"""The pages that need pyqtgraph or are not looked at first: built after the window shows."""

from collections.abc import Callable, Iterator
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.domain.sweep import Goal
from views.bridge import Jobs
from views.chat.page import ChatPage
from views.port import SessionPort
from views.results.page import ResultsPage
from views.results.result_view import ResultView
from views.state import WindowState
from views.widgets import Kit
from views.wizard.goal_step import GoalStep
from views.wizard.model_step import ModelStep
from views.wizard.page import WizardPage, WizardSteps
from views.wizard.plan_step import PlanStep
from views.wizard.run_step import RunStep

MAX_RECENT = 5


class LatePagesBuilder(QObject):
    """Builds the pages one per turn of the event loop, so that the window stays quick.

    Signals:
        finished: ``LatePages``.
    """

    finished = Signal(object)

    def __init__(self, kit: Kit, session: SessionPort, jobs: Jobs, state: WindowState) -> None:
        """Prepare; nothing is built before ``start``."""
        super().__init__()
        self._state = state
        self._parts = (kit, session, jobs)
        self._steps: Iterator[object] = self._build()
        self._turn = QTimer(self)
        self._turn.setInterval(0)
        self._turn.timeout.connect(self._on_turn)

    def start(self) -> None:
        """Build from the next turn on."""
        self._turn.start()

    def stop(self) -> None:
        """Build no more."""
        self._turn.stop()

    @Slot()
    def _on_turn(self) -> None:
        self._turn.stop()  # a page that cannot be built is not tried again
        late = next(self._steps)
        if isinstance(late, LatePages):
            self.finished.emit(late)
        else:
            self._turn.start()

    def _build(self) -> Iterator[object]:
        """Yield every part that takes its time once it is built; the pages themselves come last."""
        kit, session, jobs = self._parts
        model = ModelStep(kit, self._state.last_model, self._state.recent)
        yield model
        goal = GoalStep(kit)
        yield goal
        plan = PlanStep(kit)
        run = RunStep(kit)
        yield run
        result = ResultView(kit)
        yield result
        steps = WizardSteps(model=model, goal=goal, plan=plan, run=run, result=result)
        wizard = WizardPage(kit, session, jobs, steps)
        yield wizard
        chat = ChatPage(kit, session, jobs)
        yield chat
        view = ResultView(kit)
        yield view
        results = ResultsPage(kit, session, jobs, view)
        yield results
        yield LatePages(wizard, chat, results, self._state)


class LatePages(QObject):
    """Wizard, chat and results, and what they say to each other.

    Signals:
        page_requested: Key of the page to show.
        state_changed: Fields of ``WindowState`` to remember.
        loaded_changed: ``DeviceMemory`` of what a search or chat holds; empty = nothing.
    """

    page_requested = Signal(str)
    state_changed = Signal(object)
    loaded_changed = Signal(object)

    def __init__(
        self, wizard: WizardPage, chat: ChatPage, results: ResultsPage, state: WindowState
    ) -> None:
        """Connect the pages."""
        super().__init__()
        self.wizard = wizard
        self.chat = chat
        self.results = results
        self._recent = state.recent
        self._pages: dict[str, QWidget] = {
            "tune": self.wizard, "chat": self.chat, "results": self.results,
        }  # fmt: skip
        if state.last_model:
            self.chat.offer(state.last_model, state.last_profile or None)
        self.wizard.chat_requested.connect(self._on_chat_requested)
        self.wizard.search_started.connect(self._on_search_started)
        self.wizard.loaded_changed.connect(self.loaded_changed)
        self.chat.scene.loaded_changed.connect(self.loaded_changed)
        self.wizard.apply_requested.connect(self._on_apply_requested)
        self.results.chat_requested.connect(self._on_chat_requested)
        self.results.apply_requested.connect(self._on_apply_requested)
        self.results.search_requested.connect(self._on_search_requested)
        self.results.tune_requested.connect(self._on_tune_requested)
        self.chat.tune_requested.connect(self._on_tune_requested)

    def placing(self, stack: QStackedWidget) -> list[Callable[[], object]]:
        """Return the calls that put the pages into ``stack``, to be made one per turn."""
        pages = [partial(stack.addWidget, page) for page in self.widgets]
        return [*pages, *self.wizard.placing()]

    @property
    def widgets(self) -> tuple[QWidget, ...]:
        """The pages."""
        return tuple(self._pages.values())

    def page(self, key: str) -> QWidget:
        """Return a page by its key."""
        return self._pages[key]

    def stop(self) -> None:
        """End what waits for the user; running jobs are cancelled by who closes the window."""
        self.chat.stop()

    @Slot(str, str)
    def _on_chat_requested(self, model: str, profile_id: str) -> None:
        self.chat.offer(model, profile_id or None)
        self.state_changed.emit({"last_model": model, "last_profile": profile_id})
        self.page_requested.emit("chat")

    @Slot(str, str)
    def _on_apply_requested(self, model: str, profile_id: str) -> None:
        self.chat.offer(model, profile_id or None)
        self.state_changed.emit({"last_model": model, "last_profile": profile_id})

    @Slot(str, object)
    def _on_search_requested(self, model: str, goal: Goal) -> None:
        self.page_requested.emit("tune")
        self.wizard.choose_model(model, goal)

    @Slot(str)
    def _on_search_started(self, model: str) -> None:
        # The search measures with all memory there is: the chat's model must not hold any.
        self.chat.unload()
        self._recent = (model, *(m for m in self._recent if m != model))[:MAX_RECENT]
        self.wizard.model_step.show_recent(self._recent)
        self.state_changed.emit({"last_model": model, "recent": self._recent})

    @Slot()
    def _on_tune_requested(self) -> None:
        self.page_requested.emit("tune")
