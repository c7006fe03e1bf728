"""Shows what a search or a bench does, on stderr; Ctrl-C asks it to stop and keeps the rest."""

import contextlib
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Self

import msgspec
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from app.advice.text import render
from app.cli.findings import show_findings, view_of
from app.cli.output import progress_console
from app.domain.events import (
    SweepEvent,
    SweepFinished,
    SweepPaused,
    SweepPlanned,
    TrialFinished,
    TrialProgress,
    TrialStarted,
)
from app.domain.outcome import OUTCOMES
from app.domain.settings import Settings
from app.domain.trial import Sample, Trial
from app.domain.units import counted, format_seconds, format_tok_s
from app.sweep.stats import rate

PHASES = {
    "start": "starting the engine",
    "load": "loading weights",
    "context": "creating the context",
    "warm_up": "warming up",
    "prefill": "timing prefill",
    "decode": "timing decode",
    "check": "checking the output",
    "cool_down": "letting the GPU cool down",
}


class Follower:
    """Writes progress as a live line, as JSON lines, or not at all."""

    def __init__(self, mode: str, cancel: threading.Event) -> None:
        """Choose the form.

        Args:
            mode: ``auto`` (live on a terminal, plain lines elsewhere), ``jsonl`` or ``none``.
            cancel: Set on the first Ctrl-C; the second one interrupts at once.
        """
        self._mode = mode
        self._cancel = cancel
        self._console = progress_console()
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=mode != "auto" or not sys.stderr.isatty(),
        )
        self._task = self._live.add_task("preparing", total=None)
        self._old_handlers: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Start listening for Ctrl-C and for a polite request to end (SIGTERM)."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._old_handlers[number] = signal.signal(number, self._on_interrupt)
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give both signals back."""
        self._live.stop()
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def show(self, event: SweepEvent) -> None:
        """Show one event."""
        if self._mode == "jsonl":
            with contextlib.suppress(OSError):  # the reader left: the search goes on
                sys.stderr.write(msgspec.json.encode(event).decode() + "\n")
                sys.stderr.flush()
        elif self._mode == "auto":
            self._show_text(event)

    def _show_text(self, event: SweepEvent) -> None:
        match event:
            case SweepPlanned(plan=plan):
                low, high = format_seconds(plan.time_low_s), format_seconds(plan.time_high_s)
                loads = counted(sum(stage.max_loads for stage in plan.stages), "load")
                gpu = f", at most {counted(plan.max_n_gpu_layers, 'GPU layer')} fit"
                self._console.print(
                    f"Plan: up to {loads}, {low} to {high}, context {plan.n_ctx:,} tokens"
                    f"{gpu if plan.space.devices else ', CPU only'}."
                )
                for note in plan.notes:
                    self._console.print(render("note", note, {}), markup=False)
                show_findings(self._console, [view_of(f) for f in plan.findings])
            case TrialStarted(index=index, request=request):
                text = f"trial {index + 1}: {summary(request.settings)}"
                self._live.update(self._task, description=text, total=None)
            case TrialProgress(phase=phase, frac=frac):
                total = None if frac is None else 1.0
                what = PHASES.get(phase, phase)
                self._live.update(self._task, total=total, completed=frac or 0.0)
                self._live.update(self._task, description=what)
            case TrialFinished(index=index, trial=trial):
                self._console.print(trial_line(index, trial))
            case SweepPaused(code=code):
                self._pause(render("note", code, {}))
            case SweepFinished():
                pass

    def _pause(self, why: str) -> None:
        """Say why the search waits; ask whether to go on where somebody is there to answer."""
        self._console.print(why, markup=False)
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        self._live.stop()
        self._console.print("Go on? [Y/n] ", end="", markup=False)
        if sys.stdin.readline().strip().lower().startswith("n"):
            self._cancel.set()
        self._live.start()

    def _on_interrupt(self, _signum: int, _frame: FrameType | None) -> None:
        if self._cancel.is_set():
            raise KeyboardInterrupt
        self._cancel.set()
        if self._mode == "auto":
            self._console.print("Stopping; what was measured is kept. Ctrl-C again leaves now.")


def summary(settings: Settings) -> str:
    """Return the settings that matter in one short line."""
    layers = settings.n_gpu_layers
    parts = [counted(layers, "GPU layer")]
    if settings.n_cpu_moe:
        parts.append(f"{counted(settings.n_cpu_moe, 'expert layer')} on CPU")
    parts.append(f"ctx {settings.n_ctx}")
    parts.append(f"ubatch {settings.n_ubatch}")
    if settings.n_threads:
        parts.append(f"{settings.n_threads} thread{'s' if settings.n_threads > 1 else ''}")
    if settings.type_k != "f16" or settings.type_v != "f16":
        parts.append(f"KV {settings.type_k}/{settings.type_v}")
    if settings.flash_attn != "on":
        parts.append(f"flash attention {settings.flash_attn.value}")
    if settings.split_mode != "layer":
        parts.append(f"split mode {settings.split_mode.value}")
    if settings.load_mode != "mmap":
        parts.append("weights pinned")
    return ", ".join(parts)


def trial_line(index: int, trial: Trial) -> str:
    """Return one finished trial as a line: what the engine used, where it got that far."""
    used, workload = trial.effective or trial.request.settings, trial.request.workload
    head = f"{index + 1:>3}. {summary(used)} @ depth {workload.depth}"
    if workload.n_seq > 1:
        head += f", each of {workload.n_seq} sequences"
    if not OUTCOMES[trial.outcome].has_speed:
        why = f": {trial.error.message}" if trial.error else ""
        return f"{head}: {OUTCOMES[trial.outcome].label}{why}"
    return f"{head}: prefill {speed(trial.prefill)}, decode {speed(trial.decode)}"


def speed(samples: tuple[Sample, ...]) -> str:
    """Return the median speed of raw samples as text."""
    measured = rate(samples)
    return format_tok_s(measured.median if measured else None)
