"""``rigtune tune``: find the best settings, show the curve, its knee and the reasons."""

import argparse
import threading
from pathlib import Path

from app.cli.arguments import parse_pins
from app.cli.caps import measure_caps, show_caps
from app.cli.output import EXIT_DONE, EXIT_PARTIAL, EXIT_PROBLEM, print_json
from app.cli.progress import Follower
from app.cli.tune_document import document_of
from app.cli.tune_text import show
from app.domain.errors import Bug, EnvironmentProblem, UsageProblem
from app.domain.events import SweepFinished
from app.domain.settings import KV_TYPES
from app.domain.sweep import BudgetName, Goal, SweepRequest, SweepResult, SweepStatus
from app.session import Session
from app.session.capsweep import CapsResult

NAME = "tune"
HELP = "measure and find the best settings for a model on this machine"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="path, id, or demo")
    parser.add_argument("--goal", choices=[g.value for g in Goal], default=Goal.CHAT.value)
    parser.add_argument("--n-ctx", type=int, metavar="MIN", help="context you need, tokens")
    parser.add_argument("--floor", type=float, metavar="TOK_S", help="slowest acceptable decode")
    parser.add_argument("--headroom", type=int, metavar="MIB", help="memory to leave free")
    parser.add_argument("--kv-types", default="f16", metavar="T[,T]", help="allowed KV types")
    parser.add_argument("--pin", action="append", default=[], metavar="KNOB=VALUE")
    parser.add_argument(
        "--budget", choices=[b.value for b in BudgetName], default=BudgetName.STANDARD.value
    )
    parser.add_argument("--device", action="append", default=[], metavar="ID")
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
    if args.replay and args.record:
        raise UsageProblem("record_of_replay", "--record and --replay exclude each other")
    if args.replay:
        events = session.tune_replay(Path(args.replay), request, args.replay_seed, cancel)
    elif args.model:
        events = session.tune(
            args.model, request, resume=args.resume, record=args.record, cancel=cancel
        )
    else:
        raise UsageProblem("no_model", "tune needs a model", "Name a .gguf file, or demo.")
    result = None
    with Follower(args.progress, cancel) as follower:
        for event in events:
            follower.show(event)
            if isinstance(event, SweepFinished):
                result = event.result
    if result is None:
        msg = "the search ended without a result"
        raise Bug(msg)
    if not args.json:
        show(result, args.replay or args.model)
    caps = _caps(args, session, request, result, cancel)
    if args.json:
        print_json(document_of(result, caps))
    elif caps is not None:
        show_caps(caps)
    return exit_code(result)


def _caps(
    args: argparse.Namespace,
    session: Session,
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
                session, args.model, settings, request.budget, cancel,
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
