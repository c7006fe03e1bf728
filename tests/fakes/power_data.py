"""A made-up card under the governor, and a cap sweep of it: what the window's tests show."""

from app.domain.sweep import Reason
from app.domain.trial import Rate
from app.power.caps import CapPoint, Sustained, choose_cap
from app.power.capsweep import CapSample
from app.power.changes import Change
from app.power.control import PowerStatus
from app.power.keeper import DeviceState
from app.power.records import Mode
from app.session.capsweep import CapsEvent, CapsProgress, CapsResult, CapsStarted

KEY = "GPU-1"

POWER_CHANGES = (
    Change(
        at_utc="2026-01-12T18:21:00+00:00", key=KEY, knob="power_limit", requested=280.0,
        before=350.0, after=280.0, result="applied",
        reason=Reason(code="too_warm", data={"excess_c": 3.1}),
    ),
    Change(
        at_utc="2026-01-12T19:00:00+00:00", key=KEY, knob="power_limit", after=350.0,
        result="restored", reason=Reason(code="ended"),
    ),
)  # fmt: skip


def power_device() -> DeviceState:
    """Return a card under the governor, one step down."""
    status = PowerStatus(
        temp_c=74.2, target_c=74.0, mode=Mode.BALANCED, limit_w=280.0, clock_mhz=None, duty=1.0,
        action=Reason(code="too_warm", data={"excess_c": 3.1}), notes=(), has_helper=True,
    )  # fmt: skip
    return DeviceState(key=KEY, name="RTX 3090", status=status, limit_w=280.0, power_w=275.0)


def caps_events() -> tuple[CapsEvent, ...]:
    """Return how a cap sweep begins."""
    sample = CapSample(t_s=1.0, decode_tok_s=36.0, power_w=340.0, temp_c=79.0)
    return (
        CapsProgress(phase="password"),
        CapsStarted(device="RTX 3090", knob="power_limit", values=(350.0, 280.0)),
        CapsProgress(phase="measure", value=350.0, n_done=0, sample=sample),
    )


def caps_result(n_points: int) -> CapsResult:
    """Return the answer of a cap sweep with as many limits measured."""
    points = (
        CapPoint(cap_w=350.0, decode_tok_s=Rate(median=36.0, low=35.9, high=36.1), power_w=340.0,
                 temp_c=80.0, fan_pct=80.0, is_steady=True),
        CapPoint(cap_w=280.0, decode_tok_s=Rate(median=35.8, low=35.7, high=35.9), power_w=276.0,
                 temp_c=74.0, fan_pct=65.0, is_steady=True),
    )[:n_points]  # fmt: skip
    choice = choose_cap(points)
    after = Sustained(
        decode_tok_s=Rate(median=35.8, low=34.0, high=36.0), temp_c=75.0, power_w=276.0,
        is_limited=False,
    )  # fmt: skip
    return CapsResult(
        device="RTX 3090", key=KEY, points=points, choice=choice,
        cap_w=points[choice.point].cap_w if choice else None, sustained=(after,) * n_points,
        is_complete=n_points == 2,
    )  # fmt: skip
