"""``rigtune tune``: find the best settings, show the curve, its knee and the reasons."""

import argparse
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from app.cli.arguments import add_reserve, mib_from, parse_pins
from app.cli.caps import measure_caps, show_caps
from app.cli.check_text import show_check
from app.cli.draft_text import show_draft
from app.cli.output import EXIT_DONE, EXIT_PARTIAL, EXIT_PROBLEM, print_json
from app.cli.power_watch import PowerWatch
from app.cli.progress import Follower
from app.cli.quants import Entry, comparison_of, show_comparison
from app.cli.tune_document import document_of
from app.cli.tune_text import engine_text, show
from app.domain.check import Checked
from app.domain.draft import DraftResult
from app.domain.errors import Bug, EnvironmentProblem, UsageProblem
from app.domain.events import SweepEvent, SweepFinished, TrialFinished
from app.domain.settings import KV_TYPES
from app.domain.sweep import BudgetName, Goal, SweepRequest, SweepResult, SweepStatus
from app.export import Command, read_command
from app.library import resolve_repo
from app.session import CommandChecked, DraftTried, Session
from app.session.capsweep import CapsResult
from app.session.draft import check_draft
from app.sweep.run import POWER_CHANGED

NAME = "tune"
HELP = "measure and find the best settings for a model on this machine"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "models", metavar="MODEL", nargs="*", help="path, id, or demo; several are compared"
    )
    parser.add_argument(
        "--goal", choices=[g.value for g in Goal], default=Goal.CHAT.value,
        help="what the model is for (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--n-ctx", type=int, metavar="MIN", help="context you need, tokens")
    parser.add_argument("--floor", type=float, metavar="TOK_S", help="slowest acceptable decode")
    parser.add_argument("--headroom", type=int, metavar="MIB", help="memory to leave free")
    add_reserve(parser)
    parser.add_argument("--kv-types", default="f16", metavar="T[,T]", help="allowed KV types")
    parser.add_argument(
        "--pin", action="append", default=[], metavar="KNOB=VALUE",
        help="keep a setting as it is, e.g. n_ubatch=256",
    )  # fmt: skip
    parser.add_argument(
        "--budget", choices=[b.value for b in BudgetName], default=BudgetName.STANDARD.value,
        help="how long to search (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--device", action="append", default=[], metavar="ID", help="use this device"
    )
    parser.add_argument(
        "--check", metavar="COMMAND", help="measure this llama-server command beside the answer"
    )
    parser.add_argument(
        "--draft",
        metavar="lookup|MODEL",
        help="also try drafted tokens: looked up in the text, or from a smaller model",
    )
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted search")
    parser.add_argument("--record", metavar="FILE", help="write the search as a replay file")
    parser.add_argument("--replay", metavar="FILE", help="search a recorded machine instead")
    parser.add_argument("--replay-seed", type=int, metavar="N", help="noise seed of the replay")
    parser.add_argument(
        "--caps",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="measure power limits afterwards (default: for the goal quiet)",
    )
    parser.add_argument(
        "--progress", choices=("auto", "jsonl", "none"), default="auto", help="on stderr"
    )


def run(args: argparse.Namespace, session: Session) -> int:
    """Run the search; Ctrl-C ends it with everything measured so far."""
    cancel = threading.Event()
    request = request_from(args)
    refuse_beside_replay(args)
    if len(args.models) > 1:
        return compare(args, session, request, cancel)
    command = None if args.check is None else read_command(args.check)
    if args.draft:
        check_draft(args.draft)
    model = model_of(args, command)
    found = search(args, session, model, request, command, cancel)
    machine = None if args.replay else session.machine()
    if not args.json:
        show_found(found, args.replay or model, engine_text(machine.engine if machine else None))
    caps = _caps(args, session, model, request, found.result, cancel)
    if args.json:
        print_json(document_of(found.result, machine, found.check, found.draft, caps))
    elif caps is not None:
        show_caps(caps)
    return exit_code(found.result)


def refuse_beside_replay(args: argparse.Namespace) -> None:
    """Refuse what a recording has no use for, instead of leaving it out unsaid.

    Raises:
        UsageProblem: Such an option was given.
    """
    if not args.replay:
        if args.replay_seed is not None:
            message = "--replay-seed goes with --replay FILE only."
            raise UsageProblem("not_a_replay", message, "Leave it out, or name the recording.")
        return
    given = {
        "MODEL": args.models, "--resume": args.resume, "--record": args.record,
        "--draft": args.draft, "--caps": args.caps, "--rpc": args.rpc,
        "--engine-dir": args.engine_dir,
    }  # fmt: skip
    wrong = ", ".join(name for name, value in given.items() if value)
    if wrong:
        message = f"--replay searches a recording, which has its own model and machine: {wrong}."
        hint = "Leave that out, or leave out --replay to search on this machine."
        raise UsageProblem("not_with_replay", message, hint)


def show_found(found: "Found", name: str, engine: str) -> None:
    """Print a search's answer and what was tried beside it."""
    show(found.result, name, engine)
    if found.draft is not None:
        show_draft(found.draft)
    if found.check is not None:
        show_check(found.check)


def compare(
    args: argparse.Namespace, session: Session, request: SweepRequest, cancel: threading.Event
) -> int:
    """Search each of several models and print one table: which of them to use.

    Raises:
        UsageProblem: An option names one file or command for all of them.
    """
    for name in ("check", "draft", "record", "replay"):
        if getattr(args, name):
            message = f"--{name} goes with one model, not with {len(args.models)}"
            raise UsageProblem("several_models", message)
    entries = []
    for model in args.models:
        entries.append(entry_of(model, args, session, request, cancel))
        if cancel.is_set():
            break
    document = comparison_of(entries, session.machine(), request.floor_tok_s)
    if args.json:
        print_json(document)
    else:
        show_comparison(document)
    if cancel.is_set():
        return EXIT_PARTIAL
    return EXIT_DONE if document.fastest is not None else EXIT_PROBLEM


def entry_of(
    model: str,
    args: argparse.Namespace,
    session: Session,
    request: SweepRequest,
    cancel: threading.Event,
) -> Entry:
    """Return one model with its search; a model that cannot be used does not end the others."""
    try:
        spec = session.inspect(model)
    except EnvironmentProblem as problem:
        return Entry(model=model, error=problem.info)
    try:
        result = search(args, session, model, request, None, cancel).result
    except EnvironmentProblem as problem:
        return Entry(model=model, spec=spec, error=problem.info)
    return Entry(model=model, spec=spec, result=result)


class Found(NamedTuple):
    """What a search showed, and what was tried beside its answer."""

    result: SweepResult
    check: Checked | None
    draft: DraftResult | None


def search(
    args: argparse.Namespace,
    session: Session,
    model: str,
    request: SweepRequest,
    command: Command | None,
    cancel: threading.Event,
) -> Found:
    """Run one search, shown on stderr."""
    result, check, draft = None, None, None
    telemetry = None if args.replay else session.telemetry()
    power = PowerWatch(
        lambda: telemetry.latest_host() if telemetry else None, is_quiet=args.progress == "none"
    )
    with Follower(args.progress, cancel) as follower:
        for event in events_of(args, session, model, request, command, cancel):
            match event:
                case CommandChecked():
                    check = event.check
                case DraftTried():
                    draft = event.result
                case _:
                    follower.show(event)
            if isinstance(event, SweepFinished):
                result = event.result
            if isinstance(event, TrialFinished):
                seen = event.trial.telemetry
                if args.progress == "auto" and seen and seen.disturbed == POWER_CHANGED:
                    power.leave_to_sweep()  # it pauses next, and the follower asks
                elif not power.may_go_on():
                    cancel.set()
    if result is None:
        msg = "the search ended without a result"
        raise Bug(msg)
    return Found(result, check, draft)


def events_of(
    args: argparse.Namespace,
    session: Session,
    model: str,
    request: SweepRequest,
    command: Command | None,
    cancel: threading.Event,
) -> Iterator[SweepEvent | CommandChecked | DraftTried]:
    """Return the events of the search that the options ask for."""
    if args.replay:
        path, seed = Path(args.replay), args.replay_seed
        if command is not None:
            return session.check_replay(path, command, request, seed, cancel)
        return session.tune_replay(path, request, seed, cancel)
    return session.tune_and_try(
        model,
        request,
        command=command,
        draft=args.draft,
        resume=args.resume,
        record=args.record,
        cancel=cancel,
    )


def model_of(args: argparse.Namespace, command: Command | None) -> str:
    """Return the model: the one named, or the command line's own.

    Raises:
        UsageProblem: There is none.
    """
    if args.models or args.replay:
        return args.models[0] if args.models else ""
    if command is not None and "model" in command.options:
        return command.options["model"]
    if command is not None and "hf_repo" in command.options:
        return str(resolve_repo(command.options["hf_repo"]))
    if command is not None:
        hint = "Name the file as well: rigtune tune MODEL --check COMMAND."
        raise UsageProblem("no_model", "the command line names no model file", hint)
    raise UsageProblem("no_model", "tune needs a model", "Name a .gguf file, or demo.")


def _caps(
    args: argparse.Namespace,
    session: Session,
    model: str,
    request: SweepRequest,
    result: SweepResult,
    cancel: threading.Event,
) -> CapsResult | None:
    """Measure power limits on the answer, where that was asked for; a recording has none."""
    is_wanted = request.goal is Goal.QUIET if args.caps is None else args.caps
    if not is_wanted or args.replay or result.recommended is None or cancel.is_set():
        return None
    settings = result.recommended.settings
    try:
        with Follower("none", cancel):
            return measure_caps(
                session, model, settings, request.budget, cancel,
                is_quiet=args.progress != "auto",
            )  # fmt: skip
    except EnvironmentProblem as problem:
        return CapsResult(why_not=problem.info)  # the search's own answer must not be lost


def request_from(args: argparse.Namespace) -> SweepRequest:
    """Return the request the options describe.

    Raises:
        UsageProblem: A value makes no sense.
    """
    kv_types = tuple(args.kv_types.split(","))
    unknown = [t for t in kv_types if t not in KV_TYPES]
    if unknown:
        raise UsageProblem(
            "bad_kv_type", f"unknown KV cache type {unknown[0]!r}", f"Types: {', '.join(KV_TYPES)}."
        )
    for name, value in (("--n-ctx", args.n_ctx), ("--floor", args.floor)):
        if value is not None and not value > 0:  # NaN is not above 0 either
            raise UsageProblem("bad_setting", f"{name}: {value} is not above 0")
    if args.headroom is not None and args.headroom < 0:
        raise UsageProblem("bad_setting", f"--headroom: {args.headroom} is below 0")
    return SweepRequest(
        goal=Goal(args.goal),
        n_ctx_min=args.n_ctx,
        floor_tok_s=args.floor,
        headroom_bytes=None if args.headroom is None else args.headroom << 20,
        reserve_bytes=mib_from("--reserve", args.reserve) or 0,
        kv_types=kv_types,
        pinned=parse_pins(args.pin, None),
        budget=BudgetName(args.budget),
        devices=tuple(args.device),
    )


def exit_code(result: SweepResult) -> int:
    """Return the process's exit code for how the search ended."""
    if result.status is SweepStatus.COMPLETE or (
        result.status is SweepStatus.BUDGET_REACHED and result.recommended is not None
    ):
        return EXIT_DONE
    if result.status is SweepStatus.FAILED:
        return EXIT_PROBLEM
    return EXIT_PARTIAL
