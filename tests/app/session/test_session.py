"""The façade on a tiny real model with real workers: search, storage, faults, resume, chat."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import psutil
import pytest

from app.chat.conversation import Conversation
from app.domain.errors import EnvironmentProblem
from app.domain.events import (
    GenerationFinished,
    SweepEvent,
    SweepFinished,
    TokenGenerated,
    TrialFinished,
    TrialProgress,
)
from app.domain.finding import CheckStatus
from app.domain.outcome import Outcome
from app.domain.sweep import BudgetName, SweepRequest, SweepResult, SweepStatus
from app.rig.lease import Lease
from app.session import Session
from app.store import Store
from probes import registry
from tests.fakes.models import CHAT_TEMPLATE, make_model

pytestmark = pytest.mark.engine

REPOSITORY = Path(__file__).resolve().parents[3]
QUICK = SweepRequest(budget=BudgetName.QUICK)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    make_model(path, "llama", chat_template=CHAT_TEMPLATE)
    return path


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))
    with closing(Session(registry)) as made:
        yield made


def worker_pids() -> list[int]:
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it is ending
            if "app.worker" in child.cmdline():
                found.append(child.pid)
    return found


def result_of(events: Iterator[SweepEvent]) -> SweepResult:
    *_, last = events
    assert isinstance(last, SweepFinished)
    return last.result


def test_a_search_is_stored_as_it_goes_and_leaves_a_profile(session: Session, tiny: Path) -> None:
    """Every trial is on disk when its event arrives; the answer is a usable profile."""
    seen = 0
    result = None
    for event in session.tune(str(tiny), QUICK, cancel=threading.Event()):
        if isinstance(event, TrialFinished):
            seen += 1
            assert len(session.store().trials(1)) == seen
        if isinstance(event, SweepFinished):
            result = event.result
    assert result is not None
    assert result.status is SweepStatus.COMPLETE
    assert result.recommended is not None
    assert result.recommended.profile_id is not None
    assert session.profile(result.recommended.profile_id).settings == result.recommended.settings
    assert result.n_model_loads <= 6
    assert session.sweep(1) == result
    assert "output_same" in {reason.code for reason in result.reasons}
    assert worker_pids() == []


@pytest.mark.parametrize("phase", ["load", "context", "warm_up", "prefill", "decode"])
def test_a_killed_worker_costs_one_trial(session: Session, tiny: Path, phase: str) -> None:
    """kill -9 in any phase is a crashed trial with a cause; the search goes on to its end."""
    killed = 0
    outcomes = []
    for event in session.tune(str(tiny), QUICK, cancel=threading.Event()):
        if isinstance(event, TrialProgress) and event.phase == phase and not killed:
            for pid in worker_pids():
                psutil.Process(pid).kill()
                killed += 1
        if isinstance(event, TrialFinished):
            outcomes.append(event.trial.outcome)
        if isinstance(event, SweepFinished):
            assert event.result.status is SweepStatus.COMPLETE
            assert event.result.recommended is not None
    assert killed
    assert outcomes.count(Outcome.CRASHED) <= 1


def test_a_model_replaced_meanwhile_ends_the_search(session: Session, tmp_path: Path) -> None:
    """Trials of two files are never mixed: the search ends with the reason and what it has."""
    path = make_model(tmp_path / "changing.gguf", "llama")
    result = None
    for event in session.tune(str(path), QUICK, cancel=threading.Event()):
        if isinstance(event, TrialProgress):
            other = make_model(tmp_path / "other.gguf", "llama", seed=2)
            other.replace(path)
        if isinstance(event, SweepFinished):
            result = event.result
    assert result is not None
    assert result.status is SweepStatus.FAILED
    assert result.error is not None
    assert result.error.code == "model_replaced"
    assert len(result.trials) == 1
    assert worker_pids() == []


def test_cancelling_keeps_what_was_measured(session: Session, tiny: Path) -> None:
    """Stop ends the search with its trials, and no worker is left behind."""
    cancel = threading.Event()
    trials = 0
    for event in session.tune(str(tiny), QUICK, cancel=cancel):
        if isinstance(event, TrialFinished):
            trials += 1
            if trials == 2:
                cancel.set()
        if isinstance(event, SweepFinished):
            assert event.result.status is SweepStatus.CANCELLED
            assert len(event.result.trials) == 2
    assert worker_pids() == []


def test_an_abandoned_search_releases_everything(session: Session, tiny: Path) -> None:
    """Closing the iterator in the middle of a trial ends the worker and frees the devices."""
    events = session.tune(str(tiny), QUICK, cancel=threading.Event())
    next(e for e in events if isinstance(e, TrialProgress) and e.phase == "warm_up")
    events.close()  # type: ignore[attr-defined]
    assert worker_pids() == []
    with Lease("test"):
        pass


def test_a_killed_rigtune_repeats_at_most_one_trial(tiny: Path, tmp_path: Path) -> None:
    """After kill -9 of the whole program, --resume goes on where the store ends."""
    environment = dict(os.environ, RIGTUNE_HOME=str(tmp_path), PYTHONPATH=str(REPOSITORY))
    command = [sys.executable, "-m", "app", "tune", str(tiny), "--budget", "quick", "--json"]
    first = subprocess.Popen(
        [*command, "--progress", "jsonl"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert first.stderr is not None
    finished = 0
    for line in first.stderr:
        finished += b'"trial.finished"' in line
        if finished == 3:
            break
    first.kill()
    first.stderr.close()
    first.wait()
    with closing(Store.open(tmp_path / "data" / "rigtune.db")) as store:
        kept = store.trials(1)
    assert len(kept) >= 3
    done = subprocess.run([*command, "--resume"], env=environment, capture_output=True, check=True)
    document = json.loads(done.stdout)
    assert document["status"] == "complete"
    requests = [
        (json.dumps(t["requested"]), json.dumps(t["workload"]), t["stage"])
        for t in document["trials"]
    ]
    assert [r[2] for r in requests[: len(kept)]] == [t.request.stage for t in kept]
    assert len(document["trials"]) > len(kept)


def test_a_second_search_says_who_is_busy(session: Session, tiny: Path) -> None:
    """Two measurements at once would falsify each other."""
    with Lease("chat"), pytest.raises(EnvironmentProblem) as caught:
        list(session.tune(str(tiny), QUICK, cancel=threading.Event()))
    assert caught.value.info.code == "busy"
    assert "chat" in caught.value.info.message


def test_a_recording_leads_to_the_same_recommendation(
    session: Session, tiny: Path, tmp_path: Path
) -> None:
    """--record then --replay: same settings, no engine needed.

    The knobs that a busy machine cannot tell apart are pinned; simulated rigs test the rest.
    """
    path = tmp_path / "sweep.json"
    pinned: dict[str, int | str] = {"n_threads": 1, "n_ubatch": 512, "flash_attn": "on"}
    request = msgspec.structs.replace(QUICK, pinned=pinned)
    real = result_of(session.tune(str(tiny), request, record=str(path), cancel=threading.Event()))
    replayed = result_of(session.tune_replay(path, request, None, threading.Event()))
    assert real.recommended is not None
    assert replayed.recommended is not None
    assert replayed.recommended.settings == real.recommended.settings


def test_a_recording_with_nothing_pinned_leads_to_an_answer(
    session: Session, tiny: Path, tmp_path: Path
) -> None:
    """On a busy machine knobs may tie and the choice differ; the replay ends with one that ran."""
    path = tmp_path / "sweep.json"
    real = result_of(session.tune(str(tiny), QUICK, record=str(path), cancel=threading.Event()))
    replayed = result_of(session.tune_replay(path, QUICK, None, threading.Event()))
    assert real.recommended is not None
    assert replayed.status is SweepStatus.COMPLETE
    assert replayed.recommended is not None
    assert replayed.trials[replayed.recommended.trial].outcome is Outcome.OK


def test_chat_answers_and_survives_a_crash(session: Session, tiny: Path) -> None:
    """Text streams; a killed worker ends the answer with a cause, and loading again goes on."""
    with session.chat(str(tiny)) as chat:
        assert chat.has_template
        conversation = Conversation(chat)
        events = list(conversation.ask("hello", max_tokens=4))
        assert isinstance(events[-1], GenerationFinished)
        assert events[-1].error is None
        assert events[-1].n_gen <= 4
        for pid in worker_pids():
            psutil.Process(pid).kill()
        *_, end = conversation.ask("more", max_tokens=4)
        assert isinstance(end, GenerationFinished)
        assert end.error is not None
        for _ in chat.load():
            pass
        *_, end = conversation.ask("again", max_tokens=4)
        assert isinstance(end, GenerationFinished)
        assert end.error is None
    assert worker_pids() == []


def test_a_model_without_template_is_said(session: Session, tmp_path: Path) -> None:
    """A base model completes text, and the user is told before the first answer."""
    path = tmp_path / "base.gguf"
    make_model(path, "llama")
    chat = session.chat(str(path))
    assert not chat.has_template
    assert any("template" in note for note in chat.notes)


def test_doctor_runs_a_trial_on_the_cpu(session: Session) -> None:
    """The self-test really decodes."""
    checks = {check.id: check for check in session.doctor()}
    assert checks["trial_cpu"].status is CheckStatus.OK
    assert "tok/s" in checks["trial_cpu"].text


def test_estimate_and_defaults_without_a_gpu(session: Session, tiny: Path) -> None:
    """On a CPU-only machine nothing is offloaded and the dry run judges RAM."""
    spec = session.inspect(str(tiny))
    settings = session.default_settings(spec, 512)
    assert settings.n_gpu_layers == 0
    answer = session.estimate(spec, settings, exact=True)
    assert [d.device for d in answer.estimate.devices] == ["host"]
    assert answer.max_n_gpu_layers == 0


def test_tokens_arrive_as_text(session: Session, tiny: Path) -> None:
    """The stream's pieces put together are the answer that is kept."""
    with session.chat(str(tiny)) as chat:
        conversation = Conversation(chat)
        pieces = [
            e.text for e in conversation.ask("hi", max_tokens=8) if isinstance(e, TokenGenerated)
        ]
        answer = "".join(pieces)
        kept = [m.content for m in conversation.messages if m.role == "assistant"]
        assert kept == ([answer] if answer else [])
