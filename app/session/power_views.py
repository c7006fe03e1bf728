"""What the surfaces see of heat and power, as values."""

from collections.abc import Sequence

from app.domain.machine import GpuInfo, GpuKind, GpuSample, Machine
from app.domain.record import Record
from app.machine import kind_of
from app.power.admin import AdminCommand, limit_command, this_system
from app.power.choice import PowerChoice
from app.power.devices import expected_range, reading_of
from app.power.keeper import DeviceState, Spent

SUGGESTED_FRAC = 0.8
"""Of the limit found: published curves lose under 2 % of decode there (cards with room below)."""


class EnergyReport(Record, frozen=True, kw_only=True):
    """What an answer or a conversation cost; measured, ``None`` where too little was seen.

    Attributes:
        n_tok: Tokens generated.
        joules: Energy of the GPUs in use.
        j_per_tok: Joules per generated token.
        watt_hours: The same energy in Wh.
        cost_per_1000: Price of 1,000 tokens by the user's tariff.
        currency: What the price is in.
        source: ``counter`` (the device's own), ``draw`` (its draw added up) or ``None``.
    """

    n_tok: int
    joules: float | None
    j_per_tok: float | None
    watt_hours: float | None
    cost_per_1000: float | None
    currency: str
    source: str | None


class PowerState(Record, frozen=True, kw_only=True):
    """The status line and what stands beside it.

    Attributes:
        choice: What the user chose.
        devices: Devices that a loaded model works on; empty = nothing is governed now.
        is_paused: Whether the user put everything back and nothing is turned until they resume.
        answer: Energy of the last answer; ``None`` while nothing is loaded.
        conversation: Energy of the conversation.
    """

    choice: PowerChoice
    devices: tuple[DeviceState, ...] = ()
    is_paused: bool = False
    answer: EnergyReport | None = None
    conversation: EnergyReport | None = None


class PowerDevice(Record, frozen=True, kw_only=True):
    """What is known of a device's heat and limit without any rights.

    Attributes:
        key: ``Gpu.key``.
        name: Marketing name.
        temp_c: Core temperature now.
        slowdown_c: Where its firmware slows it down.
        power_w: Draw now.
        limit_w: Limit in force.
        range_w: Limits that the helper may be able to set; only its set and read back proves it.
        why_not: Code of why there is none (``power`` texts).
        commands: For an administrator: what sets four fifths of the limit, and what undoes it.
    """

    key: str
    name: str
    temp_c: float | None = None
    slowdown_c: float | None = None
    power_w: float | None = None
    limit_w: float | None = None
    range_w: tuple[float, float] | None = None
    why_not: str | None = None
    commands: tuple[AdminCommand, ...] = ()


def report_of(spent: Spent, choice: PowerChoice) -> EnergyReport:
    """Return what ``spent`` means at the user's tariff."""
    use, price = spent.use, choice.price_per_kwh
    return EnergyReport(
        n_tok=spent.n_tok,
        joules=use.joules if use.is_complete else None,
        j_per_tok=use.joules_per_token(spent.n_tok),
        watt_hours=use.watt_hours,
        cost_per_1000=None if price is None else use.cost_per_1000(spent.n_tok, price),
        currency=choice.currency,
        source=use.source,
    )


def device_of(key: str, info: GpuInfo, samples: Sequence[GpuSample]) -> PowerDevice:
    """Return what is known of a device, and what an administrator could do about its limit."""
    now = reading_of(samples, None, active=False)
    limit_w = now.power_limit_w
    allowed = expected_range(info, limit_w)
    if isinstance(allowed, str):
        return PowerDevice(
            key=key, name=info.name or key, temp_c=now.temp_c, slowdown_c=info.temp_slowdown_c,
            power_w=now.power_w, limit_w=limit_w, why_not=allowed,
        )  # fmt: skip
    wanted = max(allowed.low, round(SUGGESTED_FRAC * allowed.high))
    command = limit_command(info, wanted, allowed.now, this_system())
    return PowerDevice(
        key=key, name=info.name or key, temp_c=now.temp_c, slowdown_c=info.temp_slowdown_c,
        power_w=now.power_w, limit_w=limit_w, range_w=(allowed.low, allowed.high),
        commands=() if command is None else (command,),
    )  # fmt: skip


def governed_gpus(machine: Machine, names: tuple[str, ...]) -> dict[str, GpuInfo]:
    """Return the GPUs to govern, by key: those behind ``names``, or those an engine would take.

    Args:
        machine: The machine; before the engine was asked only the probes' view is there.
        names: Engine devices; empty = every discrete GPU, or the integrated one without any.
    """
    known = [gpu for gpu in machine.gpus if gpu.info is not None]
    named = [gpu for gpu in known if {d.name for d in gpu.engine} & set(names)]
    discrete = [gpu for gpu in known if kind_of(gpu) is GpuKind.DISCRETE]
    used = named or discrete or known
    return {gpu.key: gpu.info for gpu in used if gpu.info is not None}
