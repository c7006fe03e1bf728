"""``rigtune power``: how warm devices may get, what was changed, and putting it back."""

import argparse

import msgspec

from app.advice.text import render_power
from app.cli.output import EXIT_DONE, EXIT_PROBLEM, human, print_json
from app.cli.power_options import add_power_arguments, choice_from
from app.domain.record import Record
from app.domain.units import MISSING
from app.power.changes import Change, Pending
from app.power.choice import PowerChoice
from app.power.devices import check_cap
from app.power.protocol import PutBack
from app.power.records import GovernedDevice
from app.session import Session
from app.session.power_views import PowerDevice

NAME = "power"
HELP = "show and choose how warm devices may get, what was changed, and put it back"
_SHOWN = 10


class PowerDocument(Record, frozen=True, kw_only=True):
    """``rigtune.power/1``."""

    schema: str = "rigtune.power/1"
    choice: PowerChoice
    devices: tuple[PowerDevice, ...]
    pending: tuple[Pending, ...]
    restored: tuple[PutBack, ...]
    changes: tuple[Change, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_power_arguments(parser, "--mode")
    parser.add_argument(
        "--price", type=float, metavar="P", help="what a kilowatt-hour costs, for costs of answers"
    )
    parser.add_argument("--currency", metavar="TEXT", help="what the price is in, e.g. EUR")
    parser.add_argument("--forget", action="store_true", help="go back to the defaults")
    parser.add_argument(
        "--restore",
        action="store_true",
        help="put back what an earlier run left changed; the system asks for a password",
    )


def run(args: argparse.Namespace, session: Session) -> int:
    """Keep what was chosen, restore if asked to, and show how things stand."""
    power = session.power
    choice = choice_from(args, PowerChoice() if args.forget else power.choice)
    if args.price is not None:
        choice = msgspec.structs.replace(choice, price_per_kwh=args.price)
    if args.currency is not None:
        choice = msgspec.structs.replace(choice, currency=args.currency)
    devices = power.devices()
    _check_caps(choice, devices)
    if choice != power.choice:
        power.choose(choice)
    restored = power.restore_pending() if args.restore and power.pending() else ()
    document = PowerDocument(
        choice=power.choice,
        devices=devices if not restored else power.devices(),
        pending=power.pending(),
        restored=restored,
        changes=power.history(_SHOWN),
    )
    if args.json:
        print_json(document)
    else:
        _show(document, asked_to_restore=args.restore)
    return EXIT_PROBLEM if args.restore and document.pending else EXIT_DONE


def _check_caps(choice: PowerChoice, devices: tuple[PowerDevice, ...]) -> None:
    """Refuse a cap now that would be refused when a model is loaded; none is moved into the range.

    Raises:
        UsageProblem: It is outside what a device that it is meant for allows.
    """
    for device in devices:
        watts = choice.caps_w.get(device.key, choice.caps_w.get(""))
        if watts is not None and device.range_w is not None:
            low, high = device.range_w
            check_cap(GovernedDevice(key=device.key, floor_w=low, ceiling_w=high), watts)


def _show(document: PowerDocument, *, asked_to_restore: bool) -> None:
    console = human()

    def say(text: str) -> None:
        console.print(text, markup=False)

    choice = document.choice
    say(f"Mode {choice.mode}" + _target(choice) + _caps(choice))
    say("Limits: set through the helper" if choice.use_helper else "Limits: not set; pacing only")
    if choice.price_per_kwh is not None:
        say(f"Price per kWh: {choice.price_per_kwh:g} {choice.currency}".rstrip())
    for device in document.devices:
        say(_device(device))
        for command in device.commands:
            say(f"  by hand: {command.set}\n  undo:    {command.undo}")
    if not document.devices:
        say("No GPU with sensors found: there is nothing to govern.")
    for result in document.restored:
        say(f"{result.pci_id} {result.knob}: {result.result} ({_watts(result.value)})")
    if asked_to_restore and not document.restored and not document.pending:
        say("Nothing is left to put back.")
    for pending in document.pending:
        say(f"{pending.pci_id}: still changed since {pending.since_utc}; --restore puts it back")
    for change in document.changes:
        say(f"{change.at_utc}  {change_text(change)}")


def change_text(change: Change) -> str:
    """Return a change with what was read before and after, and why."""
    what = "put back" if change.requested is None else f"→ {change.requested:g}"
    seen = f"{_number(change.before)} → {_number(change.after)}"
    return f"{change.knob} {what} (read {seen}): {change.result}. {render_power(change.reason)}"


def _target(choice: PowerChoice) -> str:
    return "" if choice.target_c is None else f", target {choice.target_c:g} °C"


def _caps(choice: PowerChoice) -> str:
    caps = [f"{key or 'every device'} at most {w:g} W" for key, w in choice.caps_w.items()]
    return "".join(f", {cap}" for cap in caps)


def _device(device: PowerDevice) -> str:
    if device.range_w is None:
        limit = f"{_watts(device.limit_w)}; {render_power_code(device.why_not)}"
    else:
        low, high = device.range_w
        limit = f"{_watts(device.limit_w)}, {low:.0f} to {high:.0f} W expected to be settable"
    return (
        f"{device.name}: {_number(device.temp_c)} °C (slows down at {_number(device.slowdown_c)}), "
        f"draws {_watts(device.power_w)}, limit {limit}"
    )


def render_power_code(code: str | None) -> str:
    """Return the sentence of a code without data."""
    from app.domain.sweep import Reason

    return "" if code is None else render_power(Reason(code=code))


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:g}"


def _watts(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f} W"
