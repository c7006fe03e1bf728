"""``rigtune engine``: the engine in use, the earlier one, and what an upgrade did to profiles."""

import argparse
import threading
from contextlib import closing

from app.cli.output import EXIT_DONE, EXIT_PARTIAL, EXIT_PROBLEM, human, print_json
from app.cli.progress import Follower
from app.domain.record import Record
from app.domain.units import counted, format_seconds, format_tok_s
from app.session import EngineChecked, EngineName, Engines, EngineState, Session

NAME = "engine"
HELP = "show the engine, measure profiles again after an upgrade, go back to the earlier engine"

VERDICTS = {
    "faster": "faster than before",
    "same": "as fast as before",
    "unclear": "not told apart from before by these few measurements",
    "slower": "slower than before",
    "broken": "does not run on this engine",
    "first": "measured; there was nothing to compare with",
}
AGAINST = {"previous": "the earlier engine now", "stored": "the figures stored then"}


class ProfileLine(Record, frozen=True, kw_only=True):
    """A profile that another engine measured."""

    id: str
    name: str
    engine: str


class EngineDocument(Record, frozen=True, kw_only=True):
    """``rigtune.engine/1``."""

    schema: str = "rigtune.engine/1"
    engines: tuple[EngineState, ...]
    outdated: tuple[ProfileLine, ...] = ()
    checks: tuple[EngineChecked, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--check",
        nargs="*",
        metavar="PROFILE",
        help="measure profiles again with both engines (default: those of another engine)",
    )
    what.add_argument(
        "--use",
        choices=[name.value for name in EngineName],
        help="let searches and chats run on this RigTune's engine or on the earlier one",
    )


def run(args: argparse.Namespace, session: Session) -> int:
    """Switch, measure again, or show."""
    engines = session.engines()
    if args.use is not None:
        engines.use(EngineName(args.use))
    checks, was_stopped = _checked(args, session, engines)
    states = engines.states()
    outdated = tuple(
        ProfileLine(id=p.id, name=p.name, engine=p.engine) for p in engines.outdated(states)
    )
    if args.json:
        print_json(EngineDocument(engines=states, outdated=outdated, checks=checks))
    else:
        _show(states, outdated, checks)
    if was_stopped:
        return EXIT_PARTIAL
    is_bad = any(check.verdict in {"slower", "broken"} for check in checks)
    is_bad = is_bad or any(state.in_use and state.error is not None for state in states)
    return EXIT_PROBLEM if is_bad else EXIT_DONE


def _checked(
    args: argparse.Namespace, session: Session, engines: Engines
) -> tuple[tuple[EngineChecked, ...], bool]:
    """Return what was found, and whether the user stopped it."""
    if args.check is None:
        return (), False
    wanted = args.check or [profile.id for profile in engines.outdated(engines.states())]
    cancel = threading.Event()
    found: list[EngineChecked] = []
    with session.measuring("engine"), Follower("auto", cancel) as follower:
        for profile_id in wanted:
            with closing(engines.check(profile_id)) as events:
                for event in events:
                    if isinstance(event, EngineChecked):
                        found.append(event)
                    elif not cancel.is_set():
                        follower.show(event)
                    if cancel.is_set():
                        return tuple(found), True
    return tuple(found), False


def _show(
    states: tuple[EngineState, ...],
    outdated: tuple[ProfileLine, ...],
    checks: tuple[EngineChecked, ...],
) -> None:
    console = human()
    for state in states:
        who = "this RigTune's" if state.name is EngineName.CURRENT else "the earlier one"
        use = "in use" if state.in_use else "not in use"
        what = state.build or (state.error.message if state.error else "")
        console.print(f"{who}, {use}: {what}", markup=False)
    if len(states) == 1:
        console.print("No earlier engine is kept here; the next upgrade keeps this one.")
    for check in checks:
        _show_check(check, can_go_back=len(states) > 1 and states[0].in_use)
    if outdated:
        console.print(f"Measured by another engine build: {counted(len(outdated), 'profile')}")
        for line in outdated:
            console.print(f"  {line.id}  {line.name}: {line.engine}", markup=False)
        console.print("`rigtune engine --check` measures them again.")


def _show_check(check: EngineChecked, *, can_go_back: bool) -> None:
    console = human()
    head = f"{check.profile_id}  {check.profile_name}: {VERDICTS[check.verdict]}"
    console.print(head, markup=False)
    reference = AGAINST[check.against] if check.against else ""
    for who, speeds in (("now", check.current), (reference, check.reference)):
        if speeds is not None:
            prefill = format_tok_s(speeds.prefill_tok_s.median)
            decode = format_tok_s(speeds.decode_tok_s.median)
            request = format_seconds(speeds.request_s)
            line = f"  {who}: prefill {prefill}, decode {decode}, request {request} (measured)"
            console.print(line, markup=False)
    if check.change is not None:
        low, high = check.change.low, check.change.high
        change = f"{check.change.median:+.1%} ({low:+.1%} to {high:+.1%})"
        console.print(f"  time of a request: {change}", markup=False)
    if check.error is not None:
        console.print(f"  {check.error.message} {check.error.hint}", markup=False)
    if check.verdict in {"slower", "broken"} and can_go_back:
        console.print("  To go back: rigtune engine --use previous")
