"""A search: what is asked, the plan, its steps, its result."""

from enum import StrEnum

from app.domain.errors import ErrorInfo
from app.domain.finding import Finding
from app.domain.memory import MemoryEstimate
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.trial import Rate, Trial, TrialRequest, Workload


class Goal(StrEnum):
    """What the user wants to do with the model."""

    CHAT = "chat"
    DOCUMENTS = "documents"
    AGENT = "agent"
    LONG_CONTEXT = "long_context"
    QUIET = "quiet"


GOAL_WORKLOADS: dict[Goal, Workload] = {
    Goal.CHAT: Workload(n_prompt=512, n_gen=256, depth=2048),
    Goal.DOCUMENTS: Workload(n_prompt=8192, n_gen=512, depth=0),
    Goal.AGENT: Workload(n_prompt=2048, n_gen=256, depth=0, n_seq=4),
    Goal.LONG_CONTEXT: Workload(n_prompt=512, n_gen=256, depth=2048),
    Goal.QUIET: Workload(n_prompt=512, n_gen=256, depth=2048),
}


class BudgetName(StrEnum):
    """How much time a search may take."""

    QUICK = "quick"
    STANDARD = "standard"
    THOROUGH = "thorough"


class Budget(Record, frozen=True, kw_only=True):
    """Hard bounds of a search: weight-allocating loads and seconds."""

    max_loads: int
    max_s: float


BUDGETS: dict[BudgetName, Budget] = {
    BudgetName.QUICK: Budget(max_loads=6, max_s=180.0),
    BudgetName.STANDARD: Budget(max_loads=10, max_s=720.0),
    BudgetName.THOROUGH: Budget(max_loads=25, max_s=2700.0),
}


class SweepRequest(Record, frozen=True, kw_only=True):
    """What the user asks for.

    Attributes:
        goal: Workload and objective.
        n_ctx_min: Context the user needs, tokens; ``None`` = the goal's own need.
        floor_tok_s: Slowest acceptable decode with the context full.
        headroom_bytes: Memory to leave free per device; ``None`` = the rule of the device.
        reserve_bytes: What else must fit on the first device (a projector, a draft model, a game).
        kv_types: KV cache types the user allows, preferred first.
        pinned: Settings the user fixed, by name.
        budget: Time and load bounds.
        devices: Engine devices to use; empty = all that make sense.
    """

    goal: Goal = Goal.CHAT
    n_ctx_min: int | None = None
    floor_tok_s: float | None = None
    headroom_bytes: int | None = None
    reserve_bytes: int = 0
    kv_types: tuple[str, ...] = ("f16",)
    pinned: dict[str, int | str] = {}
    budget: BudgetName = BudgetName.STANDARD
    devices: tuple[str, ...] = ()


class SearchDevice(Record, frozen=True, kw_only=True):
    """A device as the search sees it."""

    id: str
    kind: str
    backend: str
    total_bytes: int
    free_bytes: int


class SearchHost(Record, frozen=True, kw_only=True):
    """A host as the search sees it."""

    cores_physical: int
    cores_logical: int
    ram_bytes: int


class SearchModel(Record, frozen=True, kw_only=True):
    """A model as the search sees it (a replay has no more).

    Attributes:
        name: What the file calls it.
        n_layer: Repeating blocks.
        n_expert: Experts per layer, 0 = dense.
        n_expert_used: Experts used per token.
        expert_bytes: Size of all experts' tensors.
        n_ctx_train: Context length the model was trained for, tokens.
        file_bytes: Size of all its files.
        quant: File type such as ``Q4_K_M``, when stated.
        bits_per_weight: Average size of a weight, bits, where the tensors are known.
    """

    name: str
    n_layer: int
    n_expert: int = 0
    n_expert_used: int = 0
    expert_bytes: int = 0
    n_ctx_train: int | None = None
    file_bytes: int
    quant: str | None = None
    bits_per_weight: float | None = None


class SearchSpace(Record, frozen=True, kw_only=True):
    """Everything the policy may know before the first trial.

    Attributes:
        model: The model.
        host: CPU and RAM.
        devices: Devices layers may go to; empty = CPU only.
        load_s: Expected seconds per load of weights.
    """

    model: SearchModel
    host: SearchHost
    devices: tuple[SearchDevice, ...]
    load_s: float


class PlannedStage(Record, frozen=True, kw_only=True):
    """A stage of the plan and how many loads it may take."""

    stage: str
    min_loads: int
    max_loads: int


class SweepPlan(Record, frozen=True, kw_only=True):
    """What will happen, shown before anything is loaded.

    Attributes:
        request: What was asked.
        space: What is known.
        workload: What is timed.
        n_ctx: Context every trial is created with, tokens.
        stages: Stages in order.
        too_full: Devices left out because not even one layer fits beside their headroom.
        max_n_gpu_layers: Largest layer count that fits by the exact bound.
        first: Estimate of that configuration.
        time_low_s: Shortest expected time.
        time_high_s: Longest expected time.
        notes: Codes of things the user should know first (rendered by ``advice.text``).
        findings: Advice on this plan, most serious first.
    """

    request: SweepRequest
    space: SearchSpace
    workload: Workload
    n_ctx: int
    stages: tuple[PlannedStage, ...]
    too_full: tuple[str, ...] = ()
    max_n_gpu_layers: int
    first: MemoryEstimate | None = None
    time_low_s: float
    time_high_s: float
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


class Reason(Record, frozen=True, kw_only=True):
    """A structured sentence: a code and its data; text comes from ``advice.text``."""

    code: str
    data: dict[str, str | int | float | None] = {}


class Recommended(Record, frozen=True, kw_only=True):
    """A configuration with its measured figures.

    Attributes:
        settings: Concrete settings.
        prefill_tok_s: Prefill speed at the goal's depth.
        decode_tok_s: Decode speed at the goal's depth.
        request_s: Seconds for the goal's whole request.
        device_bytes: Need per device.
        trial: Index of the deciding trial in ``trials``.
        profile_id: Stored profile, once stored.
    """

    settings: Settings
    prefill_tok_s: Rate | None
    decode_tok_s: Rate | None
    request_s: float | None
    device_bytes: dict[str, int]
    trial: int
    profile_id: str | None = None


class ContextPoint(Record, frozen=True, kw_only=True):
    """Speed with the context this full."""

    n_ctx: int
    depth: int
    decode_tok_s: Rate | None
    fits: bool
    meets_floor: bool | None = None


class Cliff(Record, frozen=True, kw_only=True):
    """Where more of a knob makes it worse: the last good and the first bad value."""

    knob: str
    last_good: int
    first_bad: int
    kind: str
    loss_frac: float | None = None


class Tie(Record, frozen=True, kw_only=True):
    """Two configurations that measurement does not separate; ``kept`` was chosen by rule."""

    kept: int
    dropped: int
    difference_frac: float
    rule: str


class SweepStatus(StrEnum):
    """How a search ended."""

    COMPLETE = "complete"
    BUDGET_REACHED = "budget_reached"
    CANCELLED = "cancelled"
    FAILED = "failed"


class SweepResult(Record, frozen=True, kw_only=True):
    """The answer with everything it rests on; ``findings`` is advice on what was measured."""

    status: SweepStatus
    recommended: Recommended | None
    knee: Recommended | None = None
    cliff: Cliff | None = None
    baseline_auto_fit: Recommended | None = None
    baseline_cpu: Recommended | None = None
    context_curve: tuple[ContextPoint, ...] = ()
    trials: tuple[Trial, ...] = ()
    n_model_loads: int = 0
    measured_s: float = 0.0
    virtual_s: float = 0.0
    reasons: tuple[Reason, ...] = ()
    ties: tuple[Tie, ...] = ()
    findings: tuple[Finding, ...] = ()
    error: ErrorInfo | None = None


class RunTrial(Record, frozen=True, kw_only=True, tag="run_trial"):
    """The policy wants this trial next."""

    request: TrialRequest


class Done(Record, frozen=True, kw_only=True, tag="done"):
    """The policy has what it needs (or may spend no more)."""

    status: SweepStatus
    error: ErrorInfo | None = None


Step = RunTrial | Done
