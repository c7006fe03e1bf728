"""``rigtune bench``: one trial, with its raw samples."""

import argparse

import msgspec

from app.advice.rules import result_findings
from app.cli.arguments import add_settings, settings_from
from app.cli.findings import FindingView, show_findings
from app.cli.findings import view_of as finding_view
from app.cli.output import EXIT_DONE, EXIT_PROBLEM, human, print_json
from app.cli.progress import trial_line
from app.cli.tune_document import (
    EngineView,
    PowerView,
    TrialView,
    engine_view,
    power_view,
    view_of,
)
from app.domain.errors import Bug, UsageProblem
from app.domain.events import TrialFinished
from app.domain.outcome import OUTCOMES
from app.domain.record import Record
from app.domain.trial import Trial, TrialRequest, Workload
from app.session import Session

NAME = "bench"
HELP = "measure one configuration"
MAX_TOKENS = 1 << 24
"""More than any model was trained for; llama.cpp itself counts in 32 bits."""
MAX_REPS = 1000
MAX_SEQUENCES = 256
"""llama.cpp's ``LLAMA_MAX_SEQ``."""


class BenchDocument(Record, frozen=True, kw_only=True):
    """``rigtune.bench/1``."""

    schema: str = "rigtune.bench/1"
    model: str
    fingerprint: str
    trial: TrialView
    findings: tuple[FindingView, ...]
    engine: EngineView | None
    power: PowerView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="path, id from `models`, or demo")
    add_settings(
        parser,
        (
            "n_gpu_layers",
            "n_cpu_moe",
            "override_tensor",
            "n_ctx",
            "n_batch",
            "n_ubatch",
            "flash_attn",
            "type_k",
            "type_v",
            "n_threads",
            "n_threads_batch",
            "load_mode",
            "devices",
            "split_mode",
            "tensor_split",
            "offload_kqv",
            "op_offload",
        ),
    )
    parser.add_argument("--n-prompt", type=int, default=512, metavar="N", help="prompt tokens")
    parser.add_argument("--n-gen", type=int, default=64, metavar="N", help="generated tokens")
    parser.add_argument("--depth", type=int, default=0, metavar="N", help="tokens in the cache")
    parser.add_argument("--reps", type=int, default=5, metavar="N", help="repetitions")
    parser.add_argument("--parallel", type=int, default=1, metavar="N", help="sequences")


def run(args: argparse.Namespace, session: Session) -> int:
    """Run the trial and print it."""
    spec = session.inspect(args.model)
    workload = Workload(
        n_prompt=args.n_prompt, n_gen=args.n_gen, depth=args.depth, n_seq=args.parallel
    )
    check(workload, args.reps)
    per_slot = workload.depth + workload.n_prompt + workload.n_gen
    base = session.default_settings(spec, n_ctx=max(512, per_slot * workload.n_seq), wake=True)
    base = msgspec.structs.replace(base, n_seq_max=workload.n_seq)
    settings = settings_from(args, base, spec.n_layer)
    if settings.n_ctx < per_slot * workload.n_seq:
        raise UsageProblem(
            "context_too_small",
            f"n_ctx {settings.n_ctx} is smaller than depth + prompt + generation "
            f"({per_slot * workload.n_seq} tokens)",
            "Raise --n-ctx.",
        )
    request = TrialRequest(
        stage="bench",
        settings=settings,
        workload=workload,
        min_reps=args.reps,
        max_reps=args.reps,
    )
    trial = last_trial(session, args.model, request)
    # After a crash the system's log may say that a driver was reset.
    machine = session.machine(refresh=not OUTCOMES[trial.outcome].has_speed)
    found = [finding_view(f) for f in result_findings(machine, (trial,))]
    if args.json:
        document = BenchDocument(
            model=spec.name,
            fingerprint=spec.fingerprint,
            trial=view_of(trial),
            findings=tuple(found),
            engine=engine_view(machine.engine),
            power=power_view(machine.host),
        )
        print_json(document)
    else:
        human().print(trial_line(0, trial), markup=False)
        if trial.error and trial.error.hint:
            human().print(trial.error.hint, markup=False)
        show_findings(human(), found)
    return EXIT_DONE if OUTCOMES[trial.outcome].has_speed else EXIT_PROBLEM


def check(workload: Workload, reps: int) -> None:
    """Refuse counts no trial can have.

    Raises:
        UsageProblem: A count is out of range.
    """
    for name, value, low, high in (
        ("--n-prompt", workload.n_prompt, 1, MAX_TOKENS),
        ("--n-gen", workload.n_gen, 1, MAX_TOKENS),
        ("--depth", workload.depth, 0, MAX_TOKENS),
        ("--reps", reps, 1, MAX_REPS),
        ("--parallel", workload.n_seq, 1, MAX_SEQUENCES),
    ):
        if not low <= value <= high:
            bound = f"below {low}" if value < low else f"above {high}"
            raise UsageProblem("bad_setting", f"{name}: {value} is {bound}")


def last_trial(session: Session, model: str, request: TrialRequest) -> Trial:
    """Run the trial to its end."""
    trial = None
    for event in session.bench(model, request):
        if isinstance(event, TrialFinished):
            trial = event.trial
    if trial is None:
        msg = "a trial ended without a result"
        raise Bug(msg)
    return trial
