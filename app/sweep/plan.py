"""What a search will do, worked out before anything is loaded."""

from collections.abc import Callable

import msgspec

from app.domain.errors import UsageProblem
from app.domain.memory import MemoryEstimate
from app.domain.overrides import check_overrides
from app.domain.settings import KV_TYPES, LAYERS_ALL, SETTINGS, SPLIT, LoadMode, Settings, SplitMode
from app.domain.sweep import (
    BUDGETS,
    GOAL_WORKLOADS,
    BudgetName,
    PlannedStage,
    SearchSpace,
    SweepPlan,
    SweepRequest,
)
from app.domain.trial import Workload
from app.domain.units import format_bytes
from app.sweep.cost import streamed_tok_s
from app.sweep.knobs import default_type
from app.sweep.ladder import Bounds, expert_ladder, layer_ladder
from app.sweep.start import base_settings, device_groups

DEFAULT_N_CTX = 4096
CTX_STEP = 256  # llama.cpp rounds the context up to this
MAX_TIMED_PROMPT = 2048  # the largest physical batch worth comparing
TIMED_GEN = 64
MAX_N_CTX = 1 << 24  # tokens; where the model does not say what it was trained for
MAX_SLOTS = 256
MAX_TOK_S = 1e6
MAX_HEADROOM_BYTES = 1 << 40
OS_RESERVE_FRAC = 0.1  # of RAM, for everything else that runs

# How the loads of a budget are shared out: stage → most loads.
_STAGES = {
    BudgetName.QUICK: {"layers": 2, "auto_fit": 1, "cpu": 1, "load_mode": 1, "finals": 1},
    BudgetName.STANDARD: {"layers": 5, "auto_fit": 1, "cpu": 1, "load_mode": 1, "finals": 2},
    BudgetName.THOROUGH: {"layers": 16, "auto_fit": 1, "cpu": 2, "load_mode": 2, "finals": 4},
}
_CONTEXT_STAGES = ("threads", "flash_attn", "ubatch", "kv", "context_curve")


def make_plan(
    request: SweepRequest, space: SearchSpace, fits: Callable[[Settings], MemoryEstimate]
) -> SweepPlan:
    """Return the plan of a search.

    Raises:
        UsageProblem: The request cannot be met: context too small, unknown or impossible pins,
            a device that is not there, a model larger than RAM and VRAM together.
    """
    if request.pinned.get("n_gpu_layers") == LAYERS_ALL:
        everything = {**request.pinned, "n_gpu_layers": space.model.n_layer + 1}
        request = msgspec.structs.replace(request, pinned=everything)
    _check_numbers(request)
    _check_pins(request, space)
    _check_devices(request, space)
    _check_headroom(request, space)
    streaming = _check_size(request, space)
    workload, notes = timed_workload(request, space)
    plan = SweepPlan(
        request=request,
        space=space,
        workload=workload,
        n_ctx=context_size(request, space, workload),
        stages=_stages(request.budget),
        max_n_gpu_layers=0,
        time_low_s=0.0,
        time_high_s=BUDGETS[request.budget].max_s,
        notes=(*streaming, *notes),
    )
    plan = _with_known_context(plan, fits)
    plan = _with_split_mode(plan, fits)
    plan = msgspec.structs.replace(plan, too_full=_too_full(plan, fits))
    return _with_bound(plan, fits)


def timed_workload(request: SweepRequest, space: SearchSpace) -> tuple[Workload, list[str]]:
    """Return what a trial times, and notes on where that differs from the goal."""
    goal = GOAL_WORKLOADS[request.goal]
    notes: list[str] = []
    depth = goal.depth
    trained = space.model.n_ctx_train
    if trained is not None and depth + goal.n_prompt + goal.n_gen > trained:
        room = trained - goal.n_prompt - goal.n_gen
        if room < 0:
            message = (
                f"{space.model.name} was trained for {trained} tokens of context; the goal "
                f"{request.goal} needs {goal.n_prompt + goal.n_gen}."
            )
            raise UsageProblem("goal_exceeds_model", message, "Choose the goal chat.")
        depth = min(depth, room)
        notes.append("depth_reduced_to_model")
    workload = Workload(
        n_prompt=min(goal.n_prompt, MAX_TIMED_PROMPT),
        n_gen=min(goal.n_gen, TIMED_GEN),
        depth=depth,
        n_seq=goal.n_seq,
    )
    return workload, notes


def context_size(request: SweepRequest, space: SearchSpace, workload: Workload) -> int:
    """Return the context of every trial, tokens over all slots.

    Raises:
        UsageProblem: The context asked for cannot hold the goal's request.
    """
    goal = GOAL_WORKLOADS[request.goal]
    per_slot = workload.depth + goal.n_prompt + goal.n_gen
    need = per_slot * goal.n_seq
    pinned, least = request.pinned.get("n_ctx"), request.n_ctx_min
    if pinned is not None and least is not None and int(pinned) < least:
        message = f"A context pinned to {pinned} tokens is less than the {least} that are needed."
        raise UsageProblem("n_ctx_pin_too_small", message, "Leave one of the two out.")
    asked = least if pinned is None else pinned
    if asked is not None:
        if int(asked) < need:
            message = (
                f"A context of {asked} tokens is too small for the goal {request.goal}: it needs "
                f"{workload.depth} + {goal.n_prompt} + {goal.n_gen} tokens"
                + (f" in each of {goal.n_seq} slots, {need} in all." if goal.n_seq > 1 else ".")
            )
            raise UsageProblem("n_ctx_too_small", message, f"Ask for at least {need} tokens.")
        _check_trained(int(asked), goal.n_seq, space)
        return -(-int(asked) // CTX_STEP) * CTX_STEP
    size = DEFAULT_N_CTX
    while size < need:
        size *= 2
    trained = space.model.n_ctx_train
    limit = size if trained is None else trained * goal.n_seq
    return max(min(size, limit // CTX_STEP * CTX_STEP), -(-need // CTX_STEP) * CTX_STEP)


def _check_trained(asked: int, n_seq: int, space: SearchSpace) -> None:
    trained = space.model.n_ctx_train or MAX_N_CTX
    if asked <= trained * n_seq:
        return
    slots = f" in {n_seq} slots" if n_seq > 1 else ""
    message = (
        f"A context of {asked} tokens{slots} is more than {space.model.name} was trained for: "
        f"{trained} tokens" + (" per slot." if slots else ".")
    )
    hint = f"Ask for at most {trained * n_seq} tokens."
    raise UsageProblem("n_ctx_over_trained", message, hint)


def _with_known_context(plan: SweepPlan, fits: Callable[[Settings], MemoryEstimate]) -> SweepPlan:
    """Take the next larger context where the rig does not know the plan's (a recording)."""
    if "n_ctx" in plan.request.pinned:
        return plan
    groups = device_groups(plan)
    base = base_settings(plan, groups[0] if groups else ())
    limit = max(plan.space.model.n_ctx_train or plan.n_ctx, plan.n_ctx)
    sizes = [plan.n_ctx] + [1 << n for n in range(8, 25) if plan.n_ctx < 1 << n <= limit]
    for n_ctx in sizes:
        if fits(msgspec.structs.replace(base, n_ctx=n_ctx)).note is None:
            return msgspec.structs.replace(plan, n_ctx=n_ctx)
    return plan


def _with_split_mode(plan: SweepPlan, fits: Callable[[Settings], MemoryEstimate]) -> SweepPlan:
    """Add the limits of a pinned split mode; refuse it where the engine does.

    Raises:
        UsageProblem: The engine does not share layers this way, in its own words.
    """
    mode, groups = plan.request.pinned.get("split_mode"), device_groups(plan)
    if mode not in (SplitMode.ROW, SplitMode.TENSOR) or not groups:
        return plan
    shared = layer_ladder(plan.request, plan.space)[-1].of(base_settings(plan, groups[0]))
    why = fits(shared).note if shared.n_gpu_layers else None
    if why is not None:
        hint = "Leave --pin split_mode out, or pin it to layer."
        raise UsageProblem("split_mode_refused", why, hint)
    return msgspec.structs.replace(plan, notes=(*plan.notes, f"split_{mode}"))


def _too_full(plan: SweepPlan, fits: Callable[[Settings], MemoryEstimate]) -> tuple[str, ...]:
    """Return the devices that would leave the others of their group without a layer.

    Every device of a group keeps its headroom, so one without room for a layer forbids all.
    """
    bounds = Bounds(fits, plan.request.headroom_bytes)
    ladder = expert_ladder(plan.request, plan.space) or layer_ladder(plan.request, plan.space)
    rung = next((r for r in ladder if r.n_gpu_layers), None)
    full: list[str] = []
    for group in device_groups(plan):
        if rung is None or len(group) < 2:
            continue
        alone = {d: rung.of(base_settings(plan, (d,))) for d in group}
        # what a recording does not know may hold a layer
        no_room = [d for d, s in alone.items() if not bounds.refused(s) and not bounds.ok(s)]
        full += no_room if len(no_room) < len(group) else []
    return tuple(full)


def _with_bound(plan: SweepPlan, fits: Callable[[Settings], MemoryEstimate]) -> SweepPlan:
    groups = device_groups(plan)
    bounds = Bounds(fits, plan.request.headroom_bytes)
    layers = layer_ladder(plan.request, plan.space)
    base = base_settings(plan, groups[0] if groups else ())
    index = bounds.largest(layers, base) if groups else None
    ladder = expert_ladder(plan.request, plan.space) or layers
    first = bounds.largest(ladder, base) if groups else None
    return msgspec.structs.replace(
        plan,
        max_n_gpu_layers=0 if index is None else layers[index].n_gpu_layers,
        first=None if first is None else fits(ladder[first].of(base)),
        time_low_s=min(round(2 * plan.space.load_s + 10.0, 1), plan.time_high_s),
    )


def _stages(budget: BudgetName) -> tuple[PlannedStage, ...]:
    loads = [
        PlannedStage(stage=name, min_loads=int(name == "layers"), max_loads=high)
        for name, high in _STAGES[budget].items()
    ]
    contexts = [PlannedStage(stage=n, min_loads=0, max_loads=0) for n in _CONTEXT_STAGES]
    return (*loads[:-1], *contexts, loads[-1])


def _check_numbers(request: SweepRequest) -> None:
    """Refuse numbers that mean nothing, wherever they come from."""
    for what, value, high, unit in (
        ("context", request.n_ctx_min, MAX_N_CTX * MAX_SLOTS, "tokens"),
        ("slowest acceptable decode", request.floor_tok_s, MAX_TOK_S, "tok/s"),
        ("memory to leave free", request.headroom_bytes, MAX_HEADROOM_BYTES, "bytes"),
    ):
        if value is not None and not 0 <= value <= high:  # NaN is in no range
            message = f"The {what} cannot be {value} {unit}."
            raise UsageProblem("bad_number", message, f"Allowed: 0 to {high} {unit}.")


def _check_pins(request: SweepRequest, space: SearchSpace) -> None:
    table = {s.name: s for s in SETTINGS}
    for name, value in request.pinned.items():
        info = table.get(name)
        if info is None or name == "devices":
            known = ", ".join(n for n in table if n != "devices")
            raise UsageProblem("unknown_pin", f"There is no setting {name!r}.", f"Known: {known}.")
        if info.choices:
            if value not in info.choices:
                hint = f"Allowed: {', '.join(info.choices)}."
                raise UsageProblem("bad_pin", f"{name} cannot be {value!r}.", hint)
            continue
        if name == "tensor_split":
            if not SPLIT.fullmatch(str(value)):
                hint = "Give one whole number per device, e.g. 3,1."
                raise UsageProblem("bad_pin", f"{name} cannot be {value!r}.", hint)
            continue
        if name == "override_tensor":
            check_overrides(str(value), request.devices or tuple(d.id for d in space.devices))
            continue
        high = _highest(name, info.high, space)
        low = info.low or 0
        if name == "n_gpu_layers" and value and not space.devices:
            hint = "Leave the pin out, or run rigtune doctor where there should be one."
            raise UsageProblem("no_device", "There is no device here to hold layers.", hint)
        if not isinstance(value, int) or value < low or (high is not None and value > high):
            hint = f"Allowed: {low} to {'any' if high is None else high}."
            raise UsageProblem("bad_pin", f"{name} cannot be {value!r}.", hint)
    _check_pin_pairs(request)


def _check_pin_pairs(request: SweepRequest) -> None:
    pinned = request.pinned
    bad = [k for k in request.kv_types if k not in KV_TYPES]
    if bad:
        hint = f"Known: {', '.join(KV_TYPES)}."
        raise UsageProblem("bad_kv_type", f"There is no KV cache type {bad[0]!r}.", hint)
    if pinned.get("split_mode") == SplitMode.TENSOR and pinned.get("flash_attn") == "off":
        message = "Split mode tensor needs flash attention."
        hint = "Pin flash_attn to on, or split_mode to layer."
        raise UsageProblem("tensor_split_without_flash_attn", message, hint)
    default = Settings(n_gpu_layers=0)
    if int(pinned.get("n_ubatch", 1)) > int(pinned.get("n_batch", default.n_batch)):
        hint = "Pin n_batch to at least n_ubatch."
        raise UsageProblem("ubatch_over_batch", "n_ubatch cannot exceed n_batch.", hint)
    kind = pinned.get("type_v", default_type(request.kv_types))
    quantised = kind not in ("f16", "f32", "bf16")
    if quantised and pinned.get("flash_attn") == "off":
        message = "A quantised V cache needs flash attention."
        hint = "Pin flash_attn to on, or allow f16."
        raise UsageProblem("v_needs_flash_attn", message, hint)


def _highest(name: str, high: int | None, space: SearchSpace) -> int | None:
    limits = {"n_gpu_layers": space.model.n_layer + 1, "n_cpu_moe": space.model.n_layer}
    return limits.get(name, high)


def _check_devices(request: SweepRequest, space: SearchSpace) -> None:
    known = [d.id for d in space.devices]
    for device in request.devices:
        if device not in known:
            hint = f"There is: {', '.join(known) or 'only the CPU'}."
            raise UsageProblem("unknown_device", f"There is no device {device!r}.", hint)


def _check_headroom(request: SweepRequest, space: SearchSpace) -> None:
    """Refuse a headroom that leaves nothing of any device: the CPU would answer unasked."""
    used = [d for d in space.devices if not request.devices or d.id in request.devices]
    most = max((d.free_bytes for d in used), default=None)
    wanted = request.headroom_bytes
    if wanted is None or most is None or wanted < most or request.pinned.get("n_gpu_layers") == 0:
        return
    message = (
        f"A headroom of {format_bytes(wanted)} leaves nothing of the devices: "
        f"at most {format_bytes(most)} are free on one of them."
    )
    hint = "Ask for less headroom, or for the CPU alone with --pin n_gpu_layers=0."
    raise UsageProblem("headroom_too_large", message, hint)


def _check_size(request: SweepRequest, space: SearchSpace) -> tuple[str, ...]:
    """Refuse a model that RAM and VRAM cannot hold, unless the user insists; return notes.

    Mapped weights that do not fit are read from the file again for every token.
    """
    vram = sum(d.total_bytes for d in space.devices if d.kind not in ("integrated", "software"))
    room = int(space.host.ram_bytes * (1 - OS_RESERVE_FRAC)) + vram
    over = space.model.file_bytes - room
    if over <= 0:
        return ()
    if request.pinned.get("load_mode") == LoadMode.MMAP:
        return ("streams_from_file",)
    message = (
        f"{space.model.name} needs {format_bytes(space.model.file_bytes)} for its weights; RAM "
        f"({format_bytes(space.host.ram_bytes)}) and VRAM ({format_bytes(vram)}) together are "
        f"too small by {format_bytes(over)}."
    )
    hint = (
        "Choose a smaller quantisation of the model or a smaller model. With "
        f"--pin load_mode=mmap the rest is read from the file for every token: about "
        f"{streamed_tok_s(space, over):.2g} tok/s."
    )
    raise UsageProblem("model_too_large", message, hint)
