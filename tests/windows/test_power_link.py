"""The power helper over Windows' named pipes, started here without the UAC prompt before it."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from app.domain.errors import EnvironmentProblem
from app.power.client import HelperClient, Link
from app.power.protocol import Applied, SetPower

assert sys.platform == "win32"

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 60.0
PCI_ID = "0000:01:00.0"
LIMIT_W = 250.0
HELPER = Path(__file__).resolve().parents[1] / "fakes" / "power_pipes.py"
PARENT = """
import subprocess, sys
from app.power.client import HelperClient
from app.power.windows_link import WindowsLink
def start(name):
    child = subprocess.Popen([sys.executable, sys.argv[1], name, sys.argv[2]])
    print(child.pid, flush=True)
HelperClient(WindowsLink(start)).begin(sys.argv[3])
print("open", flush=True)
sys.stdin.read()
"""


class Starter:
    """Starts the helper without asking for more rights."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self, pipe_name: str) -> None:
        command = [sys.executable, str(HELPER), pipe_name, str(self._journal)]
        self.process = subprocess.Popen(command)

    def ended(self) -> int:
        assert self.process is not None
        return self.process.wait(WITHIN_S)


def connect(start: Callable[[str], None]) -> Link:
    """Make the pipes and start a helper."""
    from app.power.windows_link import WindowsLink  # exists on Windows only

    return WindowsLink(start)


@pytest.fixture
def starter(tmp_path: Path) -> Starter:
    return Starter(tmp_path / "journal")


def in_time(action: Callable[[], object]) -> bool:
    """Whether an action ends at all."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(WITHIN_S)
    return not thread.is_alive()


def test_helper_answers_over_the_pipes(starter: Starter) -> None:
    """It opens the card, sets a limit, puts the one found back, and ends when it is told to."""
    client = HelperClient(connect(starter))
    facts = client.begin(PCI_ID)
    assert facts.power is not None
    reply = client.ask(SetPower(watts=LIMIT_W))
    assert isinstance(reply, Applied), reply
    (result,) = client.end()
    assert (result.knob, result.result) == ("power_limit", "restored")
    assert starter.ended() == 0


def test_card_that_is_not_there_is_refused(starter: Starter) -> None:
    """A device that may not be controlled ends in a sentence, and the helper is gone."""
    with pytest.raises(EnvironmentProblem) as caught:
        HelperClient(connect(starter)).begin("not an address")
    assert caught.value.info.code == "helper_refused"
    assert starter.ended() == 0


def test_helper_ends_with_the_program_that_started_it(tmp_path: Path) -> None:
    """RigTune killed: the broken pipe ends the helper, which would put back what it set."""
    command = [sys.executable, "-c", PARENT, str(HELPER), str(tmp_path / "journal"), PCI_ID]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as parent:
        assert parent.stdout
        helper = psutil.Process(int(parent.stdout.readline()))
        assert parent.stdout.readline().strip() == b"open"
        assert helper.is_running()
        parent.kill()
        helper.wait(WITHIN_S)


def test_helper_that_never_comes_keeps_nobody(starter: Starter) -> None:
    """A helper that ends before it opened the pipes: giving up does not wait for it."""
    link = connect(lambda _name: None)
    assert link.receive(0.0) is None
    assert in_time(link.close)


def test_declined_prompt_leaves_no_pipe() -> None:
    """What was made for a helper that may not start is gone again."""
    names: list[str] = []

    def decline(name: str) -> None:
        names.append(name)
        raise EnvironmentProblem("helper_dismissed", "no")

    with pytest.raises(EnvironmentProblem):
        connect(decline)
    assert not Path(names[0] + "-requests").exists()
