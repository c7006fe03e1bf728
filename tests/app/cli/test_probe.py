"""`rigtune probe` on recorded machines: JSON complete, text readable."""

import json
import subprocess
from pathlib import Path

import pytest
from typing_extensions import override

from app.cli.main import run
from app.cli.probe import document_of
from app.cli.probe_text import gpu_details, host_rows
from app.domain.machine import HostInfo, ProbeSet
from app.session import Session
from app.session.recording import write_engine
from probes import registry
from probes.record import write
from tests.fakes.odd_machines import LISTED, sixteen
from tests.fakes.probe import FakeGpuProbe, gpu_sample
from tests.fakes.recorded import MACHINES, RecordedMachine
from views.__main__ import recording


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep everything RigTune writes in the test's own folder."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))


def output(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert run(["probe", *argv], registry) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ["windows-laptop", "hybrid-asleep", "no-gpu", "mig-server"])
def test_json_has_host_gpus_engine_and_findings(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One document with everything; each finding with text, remedy and weight."""
    document = json.loads(output(capsys, "--replay", str(MACHINES / name), "--json"))
    assert document["schema"] == "rigtune.probe/1"
    assert {"host", "gpus", "engine", "unavailable", "findings"} <= set(document)
    for finding in document["findings"]:
        assert {"id", "severity", "evidence", "text", "remedy", "verify", "actor"} <= set(finding)
        assert finding["text"]
    for gpu in document["gpus"]:
        assert {"key", "info", "engine", "unmatched", "reading"} <= set(gpu)


def test_readings_of_both_probes_are_one(capsys: pytest.CaptureFixture[str]) -> None:
    """NVML's temperature and Windows' shared memory stand in one reading."""
    machine = str(MACHINES / "windows-desktop")
    reading = json.loads(output(capsys, "--replay", machine, "--json"))["gpus"][0]["reading"]
    assert reading["temp_c"] == 41.0
    assert reading["shared_used_bytes"] == 180 << 20


def test_text_shows_timeouts_and_advice(capsys: pytest.CaptureFixture[str]) -> None:
    """People see the values of Windows, where they come from, and what they mean."""
    text = output(capsys, "--replay", str(MACHINES / "windows-tweaked"))
    assert "TdrLevel" in text
    assert "set in the registry" in text
    assert "has no effect" in text


def test_sleeping_card_is_called_asleep(capsys: pytest.CaptureFixture[str]) -> None:
    """No number is shown for a card that sleeps."""
    text = output(capsys, "--replay", str(MACHINES / "hybrid-asleep"))
    assert "asleep" in text


@pytest.mark.parametrize("path", sorted(MACHINES.iterdir()), ids=lambda path: path.name)
def test_every_recorded_machine_can_be_shown(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No reading, however odd, breaks the page; nothing absurd is shown."""
    text = output(capsys, "--replay", str(path))
    assert "nan" not in text.lower()
    assert "None" not in text


def test_the_window_opens_on_a_recorded_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a command, --replay names the machine that the window shows."""
    started: list[list[str]] = []

    def start(line: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        started.append(line)
        return subprocess.CompletedProcess(line, 0)

    monkeypatch.setattr("app.cli.window.has_display", lambda: True)
    monkeypatch.setattr("app.cli.window.subprocess.run", start)
    assert run(["--replay", "folder"], registry) == 0
    assert started[0][-2:] == ["--replay", "folder"]
    assert recording(["rigtune-gui", "--replay", "folder"]) == "folder"
    assert recording(["rigtune-gui"]) is None
    assert recording(["rigtune-gui", "--replay"]) is None


def test_what_the_driver_tells_beside_the_curves(capsys: pytest.CaptureFixture[str]) -> None:
    """Fan, clocks, temperatures of the firmware and the driver's modes are shown."""
    desktop = output(capsys, "--replay", str(MACHINES / "nvidia-desktop"))
    for words in ("fan 30 % at 720 rpm", "core clock up to 3,105 MHz", "switches off at 100 °C"):
        assert words in desktop
    assert "speed readable by root only" in " ".join(desktop.split())
    laptop = output(capsys, "--replay", str(MACHINES / "windows-laptop"))
    assert "driver's power mode: adaptive" in laptop
    assert "24 MiB L3" in laptop.replace("\xa0", " ")


def test_one_core_is_singular() -> None:
    """A machine with one core and one thread is described in grammar."""
    rows = host_rows(HostInfo(os="linux", cpu_name="A", cores_physical=1, cores_logical=1))
    assert rows[1][1] == "A (1 core, 1 thread)"


def test_sixteen_cards_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A server's cards are all listed, as text and as JSON."""
    write(tmp_path, sixteen())
    write_engine(tmp_path, LISTED)
    text = output(capsys, "--replay", str(tmp_path))
    assert all(f"CUDA{n}" in text for n in range(16))
    assert len(json.loads(output(capsys, "--replay", str(tmp_path), "--json"))["gpus"]) == 16


class Stalled(RecordedMachine):
    """A machine whose card's driver does not answer."""

    def __init__(self) -> None:
        super().__init__("no-gpu")
        self.probe = FakeGpuProbe([gpu_sample("GPU-1")], "nvml")

    @override
    def detect(self) -> ProbeSet:
        found = registry.replay(MACHINES / "no-gpu")
        return registry.Probes(found.host, (self.probe,), {})


def test_driver_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its time the page is shown without the reading, and says why there is none."""
    monkeypatch.setattr("app.cli.probe.READ_S", 0.05)
    machine = Stalled()
    machine.probe.stall()
    session = Session(machine, engine_dir="/no/such/folder")
    gpu = document_of(session).gpus[0]
    assert gpu.reading is not None
    assert gpu.reading.missing["temp_c"] == "stale"
    details = gpu_details(gpu.info, gpu.reading)
    assert any("does not answer in time" in line for line in details)
    machine.probe.hang.set()  # type: ignore[union-attr]
    session.close()
