"""From a trial to the next estimate: what llama.cpp does not count, read by a scripted NVML."""

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typing_extensions import override

from app.cli.estimate import document_of, show
from app.cli.output import print_json
from app.domain.events import TrialFinished, TrialProgress
from app.domain.machine import GpuProbe, HostProbe, ProbeSet
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.trial import TrialRequest, Workload
from app.domain.units import GIB, MIB
from app.session import Session
from app.session.here import Here
from tests.fakes.faulty_worker import CARD_BYTES, faulty
from tests.fakes.models import make_model
from tests.fakes.nvidia import ANSWERS, card, probe_of
from tests.fakes.probe import FakeHostProbe, FakeNvml
from tests.fakes.recorded import RecordedMachine

CONTEXT, GROWTH = 412 * MIB, 87 * MIB
TOTAL, USED = 8 * GIB, 600 * MIB


class Probes(NamedTuple):
    """What a machine offers to be read by."""

    gpus: tuple[GpuProbe, ...]
    host: HostProbe
    unavailable: dict[str, str]


class OneCard(RecordedMachine):
    """A machine with one NVIDIA card, whose used memory and driver a test sets."""

    def __init__(self, driver: str) -> None:
        super().__init__("no-gpu")
        self.driver = driver
        self.used = USED

    @override
    def detect(self) -> ProbeSet:
        """Return a probe of the card on a scripted NVML."""
        answers: dict[str, Any] = ANSWERS | {
            "nvmlSystemGetDriverVersion": self.driver,
            "nvmlDeviceGetMemoryInfo": lambda *_: {
                "total": TOTAL, "used": self.used, "free": TOTAL - self.used, "reserved": 0,
            },
        }  # fmt: skip
        probe = probe_of(card(), FakeNvml(answers), time.perf_counter_ns)
        return Probes((probe,), FakeHostProbe(), {})


def on(machine: OneCard) -> Session:
    """Return a session there, whose engine is a child with a card and no weights."""
    session = Session(machine)
    session._here = Here(machine, None, faulty("device@hello"))
    return session


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    return str(make_model(tmp_path / "tiny.gguf", "llama"))


def bench(session: Session, machine: OneCard, model: str) -> None:
    """Run one trial; the card fills as buffers, driver and pools do."""
    settings = Settings(n_gpu_layers=5, n_ctx=512, devices=("CUDA0",))
    request = TrialRequest(
        stage="bench", settings=settings, workload=Workload(n_prompt=16, n_gen=8), min_reps=1,
        max_reps=1,
    )  # fmt: skip
    last = None
    for event in session.bench(model, request):
        if isinstance(event, TrialProgress):
            taken = {"load": 0, "decode": GROWTH}.get(event.phase)
            if taken is not None:
                machine.used = USED + CARD_BYTES + CONTEXT + taken
        last = event
    assert isinstance(last, TrialFinished)
    assert last.trial.outcome is Outcome.OK, last.trial.error
    machine.used = USED


def estimated(
    session: Session, model: str, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, Any], str]:
    """Return ``estimate --json`` of the card, and what a person reads."""
    answer = session.estimate(session.inspect(model), Settings(n_gpu_layers=5, n_ctx=512))
    capsys.readouterr()
    print_json(document_of(answer))
    document = json.loads(capsys.readouterr().out)
    show(answer)
    return document, capsys.readouterr().out


@pytest.fixture
def taught(model: str) -> str:
    machine = OneCard("580.10")
    with closing(on(machine)) as session:
        session.machine(wake=True)
        bench(session, machine, model)
    return model


def test_what_a_trial_took_is_in_the_next_estimate(
    taught: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another start of the program: driver and growth as measured, and with which driver."""
    with closing(on(OneCard("580.10"))) as session:
        document, shown = estimated(session, taught, capsys)
    gpu = document["devices"][0]
    assert (gpu["device"], gpu["driver_context_bytes"], gpu["growth_bytes"]) == (
        "CUDA0", CONTEXT, GROWTH,
    )  # fmt: skip
    assert gpu["measured_parts"] == ["driver_context", "growth"]
    assert gpu["measured_driver"] == "nvidia 580.10"
    assert gpu["free_bytes"] == TOTAL - USED
    assert "412\u00a0MiB" in shown
    assert "measured on this machine with nvidia 580.10" in " ".join(shown.split())


def test_after_a_driver_update_the_old_figure_is_not_used(
    taught: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table's figures come back, and a sentence names both drivers, until the next load."""
    machine = OneCard("590.01")
    with closing(on(machine)) as session:
        document, shown = estimated(session, taught, capsys)
        gpu = document["devices"][0]
        assert (gpu["driver_context_bytes"], gpu["growth_bytes"]) == (530 * MIB, 250 * MIB)
        assert (gpu["measured_parts"], gpu["measured_driver"]) == ([], None)
        assert "nvidia 580.10" in document["note"]
        assert "nvidia 590.01" in document["note"]
        assert "from a table" in " ".join(shown.split())
        bench(session, machine, taught)
        document, _ = estimated(session, taught, capsys)
    assert document["devices"][0]["measured_driver"] == "nvidia 590.01"
    assert "580.10" not in (document["note"] or "")
