"""Where a search starts: the devices to consider and the configuration to vary."""

import msgspec

from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import SweepPlan
from app.sweep.knobs import default_type

# Best guess first. Kinds are never mixed: the slower kind would hold the faster one up.
KINDS = ("discrete", "unknown", "integrated", "remote", "software")


def device_groups(plan: SweepPlan) -> tuple[tuple[str, ...], ...]:
    """Return the sets of devices to consider, best guess first."""
    wanted = plan.request.devices
    usable = [d for d in plan.space.devices if d.id not in plan.too_full]
    known = [d for d in usable if not wanted or d.id in wanted]
    groups = [tuple(d.id for d in known if d.kind == kind) for kind in KINDS]
    return tuple(g for g in groups if g)


def kind_of(plan: SweepPlan, group: tuple[str, ...]) -> str:
    """Return what kind the devices of ``group`` are."""
    return next((d.kind for d in plan.space.devices if d.id in group), "unknown")


def base_settings(plan: SweepPlan, devices: tuple[str, ...]) -> Settings:
    """Return the configuration every search starts from, pinned knobs applied."""
    request = plan.request
    kind = default_type(request.kv_types)
    base = Settings(
        n_gpu_layers=0,
        n_ctx=plan.n_ctx,
        flash_attn=FlashAttn.AUTO,
        type_k=kind,
        type_v=kind,
        n_threads=plan.space.host.cores_physical,
        devices=devices,
        n_seq_max=plan.workload.n_seq,
    )
    fixed = {k: v for k, v in request.pinned.items() if k not in ("n_gpu_layers", "n_cpu_moe")}
    if "n_ctx" in fixed:
        fixed["n_ctx"] = plan.n_ctx
    return msgspec.convert({**msgspec.to_builtins(base), **fixed}, Settings)
