"""Options about heat and power that ``chat`` and ``serve`` share, and what they show."""

import argparse
from collections.abc import Callable

import msgspec

from app.advice.text import render_power
from app.cli.output import progress_console
from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.units import MISSING, significant
from app.power.choice import PowerChoice, checked
from app.power.keeper import DeviceState
from app.power.records import Mode
from app.session.power import Power
from app.session.power_views import EnergyReport


def add_power_arguments(parser: argparse.ArgumentParser, mode: str = "--power") -> None:
    """Add what chooses how warm and loud the machine may get; ``mode`` names the first option."""
    group = parser.add_argument_group("heat and power (default: as `rigtune power` says)")
    group.add_argument(
        mode, dest="power", choices=tuple(map(str, Mode)), help="how warm the devices may get"
    )
    group.add_argument(
        "--target-temp", type=float, metavar="C", help="target temperature instead of the mode's"
    )
    group.add_argument(
        "--cap", type=float, metavar="W", help="power limit to stay below (needs the helper)"
    )
    group.add_argument(
        "--use-helper",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="let the installed helper set limits; the system asks for a password",
    )


def choice_from(args: argparse.Namespace, known: PowerChoice) -> PowerChoice:
    """Return the choice that the options describe, over what was ``known``.

    A mode without a temperature drops an earlier temperature: it would hide the mode.

    Raises:
        UsageProblem: A figure makes no sense.
    """
    choice = known
    if args.power is not None:
        choice = msgspec.structs.replace(choice, mode=Mode(args.power), target_c=None)
    if args.target_temp is not None:
        choice = msgspec.structs.replace(choice, target_c=args.target_temp)
    if args.use_helper is not None:
        choice = msgspec.structs.replace(choice, use_helper=args.use_helper)
    if args.cap is not None:
        wanted = True if args.use_helper is None else args.use_helper
        choice = msgspec.structs.replace(choice, caps_w={"": args.cap}, use_helper=wanted)
    return checked(choice)


def apply_power(args: argparse.Namespace, power: Power) -> None:
    """Follow the options in this run only."""
    power.choose(choice_from(args, power.choice), keep=False)


def tell_pending(power: Power) -> None:
    """Say what an earlier run left changed, and how to put it back; any command may find it."""
    try:
        left = power.pending()
    except EnvironmentProblem:
        return  # without a place for files there is nothing on record
    for pending in left:
        text = f"{pending.pci_id} still has the power limit of an earlier run"
        progress_console().print(
            f"({text}: rigtune power --restore puts it back)", style="yellow", markup=False
        )


class News:
    """Tells each thing that the governor does once, for a terminal in which text goes by."""

    def __init__(self, power: Power | None) -> None:
        """Listen to ``power``; ``None`` = nothing is governed."""
        self._power = power
        self._said: dict[str, object] = {}

    def tell(self) -> None:
        """Say what has been done or noted since the last call."""
        for state in self._power.state.devices if self._power is not None else ():
            status = state.status
            known = (state.problem, status and status.action, status and status.notes)
            if self._said.get(state.key, (None, None, ())) != known:
                self._said[state.key] = known
                text = state_text(state) if status else state.name
                if state.problem is not None:
                    text += f" {state.problem.message} {state.problem.hint}"
                progress_console().print(f"({text})", style="dim", markup=False)


def carry_out(power: Power | None, what: str, say: Callable[[str], None]) -> None:
    """Carry out ``/power WHAT`` of a chat: another mode, ``restore``, ``resume``, or just look.

    Raises:
        UsageProblem: There is no such thing to do.
    """
    if power is None:
        return
    if what in tuple(Mode):
        power.choose(msgspec.structs.replace(power.choice, mode=Mode(what), target_c=None))
    elif what == "restore":
        power.restore()
    elif what == "resume":
        power.resume()
    elif what:
        known = ", ".join((*Mode, "restore", "resume"))
        raise UsageProblem("unknown_mode", f"There is no power mode {what!r}.", f"Known: {known}.")
    state = power.state
    say(f"Mode {state.choice.mode}{', paused' if state.is_paused else ''}")
    for device in state.devices:
        say(state_text(device))
    if not state.devices:
        say("No GPU is in use: there is nothing to govern.")
    if text := energy_text(state.conversation):
        say(f"This conversation: {text}")


def show_energy(power: Power | None) -> None:
    """Say what the answer that just ended cost, and the conversation so far."""
    if power is None:
        return
    power.measure()
    state = power.state
    if text := energy_text(state.answer):
        total = state.conversation
        whole = "" if total is None or total.watt_hours is None else significant(total.watt_hours)
        text += f"; this conversation {whole} Wh" if whole else ""
        progress_console().print(text, style="dim", markup=False)


def energy_text(report: EnergyReport | None) -> str:
    """Return what an answer cost, e.g. ``2.41 J per token, 0.17 Wh``; empty when not known."""
    if report is None or report.j_per_tok is None or report.watt_hours is None:
        return ""
    text = f"{significant(report.j_per_tok)} J per token, {significant(report.watt_hours)} Wh"
    if report.cost_per_1000 is not None:
        text += f", {significant(report.cost_per_1000)} {report.currency}".rstrip()
        text += " per 1,000 tokens"
    return text


def state_text(state: DeviceState) -> str:
    """Return the status line of a device: temperature, limit, action and reason."""
    status = state.status
    if status is None:
        return f"{state.name}: no reading yet"
    parts = [
        f"{_of(status.temp_c)} of {status.target_c:.0f} °C",
        f"limit {_of(status.limit_w or state.limit_w)} W",
        f"working {status.duty * 100:.0f} % of the time",
        f"mode {status.mode}",
    ]
    reasons = [*([status.action] if status.action else []), *status.notes]
    return f"{state.name}: {', '.join(parts)}. " + " ".join(render_power(r) for r in reasons)


def _of(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f}"
