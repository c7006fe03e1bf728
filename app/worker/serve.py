"""The worker's main thread: one request after the other."""

import os
import sys
import time
import traceback
from collections.abc import Mapping
from typing import BinaryIO

from app.domain.causes import shorten
from app.domain.errors import Bug, ErrorInfo
from app.domain.outcome import Outcome
from app.runtime import version
from app.worker import devices as engine_devices
from app.worker.bench import Trial
from app.worker.cancel import CancelFlag, EngineFailure
from app.worker.channel import Channel
from app.worker.engine import Engine
from app.worker.enginelog import EngineLog
from app.worker.generate import Generator
from app.worker.prompt import build_prompt, builtin_names, tokenize
from app.worker.protocol import (
    NO_BREAKDOWN,
    PROTOCOL_VERSION,
    Bye,
    CheckOutput,
    CheckTemplate,
    DryRun,
    DryRunFinished,
    Failed,
    Generate,
    Hello,
    Load,
    LoadFinished,
    LoadProgress,
    LoadStarted,
    Message,
    Request,
    RunTrial,
    Serve,
    Shutdown,
    Speculate,
    Tokenize,
    TokenizeFinished,
    TrialFinished,
    TrialProgress,
    TrialStarted,
)
from app.worker.template_check import check_template

EXIT_DONE, EXIT_NO_ENGINE = 0, 3


def serve(
    fd: int,
    stdin: BinaryIO,
    *,
    rpc: tuple[str, ...],
    engine_dir: str | None,
    pins: Mapping[str, str],
) -> int:
    """Say hello, answer requests until shutdown, and return the exit code.

    Args:
        fd: Descriptor the replies go to.
        stdin: Where the requests come from; its end ends the process.
        rpc: Endpoints of RPC servers to join.
        engine_dir: Folder of the backends, ``None`` = the installed engine's.
        pins: Name → PCI address of the only cards to use; empty = all.
    """
    cancel = CancelFlag()
    channel = Channel(fd, cancel)
    channel.start(stdin)
    log = EngineLog(channel)
    try:
        engine_devices.load_backends(engine_dir)
        engine_devices.pin(pins)
        for endpoint in rpc:
            engine_devices.add_remote(endpoint)
        info = engine_devices.engine_info(engine_dir)
    except EngineFailure as failure:
        channel.send(Failed(outcome=failure.outcome, error=failure.error))
        return EXIT_NO_ENGINE
    hello = Hello(
        protocol=PROTOCOL_VERSION, app_version=version(), pid=os.getpid(), engine=info,
        chat_templates=tuple(builtin_names()),
    )  # fmt: skip
    channel.send(hello)
    worker = Worker(channel, Engine(log, cancel), log)
    worker.run()
    channel.send(Bye())
    return EXIT_DONE


class Worker:
    """Answers requests with one engine."""

    def __init__(self, channel: Channel, engine: Engine, log: EngineLog) -> None:
        """Answer on ``channel``."""
        self._channel = channel
        self._engine = engine
        self._log = log
        self._generator = Generator(engine, channel)

    def run(self) -> None:
        """Answer requests until ``shutdown``."""
        while True:
            request = self._channel.next_request()
            if isinstance(request, Shutdown):
                self._generator.release()
                self._engine.unload()
                return
            self._log.begin(forward=not isinstance(request, DryRun))
            try:
                reply = self._answer(request)
            except EngineFailure as failure:
                reply = Failed(outcome=failure.outcome, error=failure.error)
            except Exception as error:  # noqa: BLE001 - top frame: a bug must reach the parent
                traceback.print_exc(file=sys.stderr)
                reply = _bug(error)
            self._channel.finish(reply)

    def _answer(self, request: Request) -> Message:
        match request:
            case Load():
                return self._load(request)
            case DryRun():
                return self._dry_run(request)
            case RunTrial():
                return self._trial(request)
            case Generate():
                return self._generator.run(request)
            case Tokenize():
                return self._count(request)
            case CheckTemplate():
                return check_template(self._engine.loaded(), request.template)
            case CheckOutput() | Speculate():
                return self._compare(request)
            case Serve():
                return self._serve(request)
            case _:
                raise Bug(type(request).__name__)

    def _count(self, request: Tokenize) -> Message:
        model = self._engine.loaded()
        if not request.messages:
            return TokenizeFinished(n_tok=len(tokenize(model, request.text)))
        alone = [tokenize(model, m.content, add_special=False) for m in request.messages]
        prompt = build_prompt(model, request.messages, request.template)
        lengths = tuple(len(tokens) for tokens in alone)
        return TokenizeFinished(n_tok=len(prompt.tokens), per_message=lengths)

    def _serve(self, request: Serve) -> Message:
        # its libraries are only needed here, and take a second to import
        from app.worker.openai_server import serve_openai  # noqa: PLC0415

        self._generator.release()
        return serve_openai(self._engine, self._channel, request)

    def _compare(self, request: CheckOutput | Speculate) -> Message:
        # they need numpy, and are rarely asked
        from app.worker.selfcheck import check_output  # noqa: PLC0415
        from app.worker.speculate import speculate  # noqa: PLC0415

        self._generator.release()
        if isinstance(request, CheckOutput):
            return check_output(self._engine, request, self._channel.send)
        return speculate(self._engine, request, self._channel.send)

    def _load(self, request: Load) -> Message:
        self._generator.release()
        self._channel.send(LoadStarted())
        effective, elapsed_ns = self._engine.load(
            request.model_path,
            request.settings,
            lambda frac: self._channel.send(LoadProgress(frac=frac)),
        )
        return LoadFinished(requested=request.settings, effective=effective, elapsed_ns=elapsed_ns)

    def _dry_run(self, request: DryRun) -> Message:
        start_ns = time.perf_counter_ns()
        try:
            devices, effective = self._engine.plan(request.model_path, request.settings)
        except EngineFailure as failure:
            if failure.outcome is Outcome.CANCELLED or failure.error.code == NO_BREAKDOWN:
                raise
            elapsed_ns = time.perf_counter_ns() - start_ns
            return DryRunFinished(
                devices=(), effective=None, elapsed_ns=elapsed_ns, refused=failure.error
            )
        elapsed_ns = time.perf_counter_ns() - start_ns
        return DryRunFinished(devices=devices, effective=effective, elapsed_ns=elapsed_ns)

    def _trial(self, request: RunTrial) -> Message:
        self._generator.release()
        self._channel.send(TrialProgress(phase="context"))
        with self._engine.context(self._engine.loaded(), request.settings) as context:
            devices = context.known_devices()
            self._channel.send(TrialStarted(effective=context.settings, devices=devices))
            trial = Trial(self._engine, context, request.workload, self._channel.send)
            prefill, decode = trial.run(request)
        return TrialFinished(prefill=prefill, decode=decode)


def _bug(error: Exception) -> Failed:
    info = ErrorInfo(
        code="bug",
        message=f"RigTune's worker failed: {type(error).__name__}: {shorten(str(error))}",
        hint="Please report it with the log.",
    )
    return Failed(outcome=Outcome.CRASHED, error=info)
