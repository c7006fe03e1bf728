"""The helper as a process of its own against a fake sysfs: it always puts the limit back."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.power.protocol import (
    Applied,
    Bye,
    Hello,
    KeepAlive,
    Message,
    Open,
    Opened,
    Quit,
    Refused,
    Reply,
    Restore,
    Restored,
    SetPower,
    decode_reply,
    encode,
)
from tests.fakes.power_sysfs import AMD_PCI, BOOT_ID, limit_w, make_amd

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sysfs is Linux's")

SCRIPT = Path(__file__).resolve().parents[3] / "fakes" / "power_helper.py"


class Running:
    """A helper process and the machine it sees."""

    def __init__(self, folder: Path) -> None:
        self.root, self.journal = folder / "root", folder / "journal"
        self.hwmon = make_amd(self.root)
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> Hello:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(self.root), str(self.journal)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.processes.append(process)
        hello = self.read()
        assert isinstance(hello, Hello)
        return hello

    def ask(self, message: Message) -> Reply:
        return self.ask_raw(encode(message))

    def ask_raw(self, line: bytes) -> Reply:
        stdin = self.processes[-1].stdin
        assert stdin
        stdin.write(line)
        stdin.flush()
        return self.read()

    def read(self) -> Reply:
        stdout = self.processes[-1].stdout
        assert stdout
        return decode_reply(stdout.readline())

    def open_and_set(self, watts: float = 150.0, lease_s: float = 30.0) -> None:
        opened = self.ask(Open(pci_id=AMD_PCI, lease_s=lease_s))
        assert isinstance(opened, Opened)
        applied = self.ask(SetPower(watts=watts))
        assert isinstance(applied, Applied), applied
        assert (applied.before, applied.after) == (203.0, watts)
        assert self.limit_w() == watts

    def limit_w(self) -> float:
        return limit_w(self.hwmon)

    def wait(self) -> int:
        return self.processes[-1].wait(60)

    def journal_files(self) -> list[str]:
        return [p.name for p in self.journal.iterdir() if p.suffix == ".json"]


@pytest.fixture
def helper(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    for process in running.processes:
        process.kill()
        process.wait(60)
        for stream in (process.stdin, process.stdout):
            assert stream
            with contextlib.suppress(OSError):  # unsent bytes to a dead child
                stream.close()


def test_quit_restores(helper: Running) -> None:
    """An orderly end puts the limit back and empties the journal."""
    helper.start()
    helper.open_and_set()
    assert helper.journal_files()
    bye = helper.ask(Quit())
    assert isinstance(bye, Bye)
    assert [r.result for r in bye.results] == ["restored"]
    assert helper.wait() == 0
    assert helper.limit_w() == 203.0
    assert helper.journal_files() == []


def test_restore_keeps_running(helper: Running) -> None:
    """One click restores; the helper stays for the next change."""
    helper.start()
    helper.open_and_set()
    restored = helper.ask(Restore())
    assert isinstance(restored, Restored)
    assert helper.limit_w() == 203.0
    assert isinstance(helper.ask(Restore()), Restored)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_restore(helper: Running, number: signal.Signals) -> None:
    """Being asked to end restores."""
    helper.start()
    helper.open_and_set()
    helper.processes[-1].send_signal(number)
    assert isinstance(helper.read(), Bye)
    assert helper.wait() == 0
    assert helper.limit_w() == 203.0


def test_death_of_the_parent_restores(helper: Running) -> None:
    """The end of standard input is the end of RigTune, however it died."""
    helper.start()
    helper.open_and_set()
    stdin = helper.processes[-1].stdin
    assert stdin
    stdin.close()
    assert helper.wait() == 0
    assert helper.limit_w() == 203.0


PARENT = """
import signal, subprocess, sys
helper = subprocess.Popen([sys.executable, *sys.argv[1:4]], stdin=subprocess.PIPE)
helper.stdin.write(b"".join(line.encode() + b"\\n" for line in sys.argv[4:]))
helper.stdin.flush()
signal.pause()
"""


def test_kill_9_of_the_parent_restores(helper: Running) -> None:
    """A RigTune that is killed outright says nothing; the helper notices and puts it back."""
    lines = [encode(m).decode().strip() for m in (Open(pci_id=AMD_PCI), SetPower(watts=150.0))]
    arguments = [str(SCRIPT), str(helper.root), str(helper.journal), *lines]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    helper.processes.append(parent)
    said = [type(helper.read()) for _ in range(3)]
    assert said == [Hello, Opened, Applied]
    assert helper.limit_w() == 150.0
    parent.kill()
    bye = helper.read()
    assert isinstance(bye, Bye)
    assert bye.reason == "parent_gone"
    assert helper.limit_w() == 203.0
    assert helper.journal_files() == []


def test_nobody_listening_restores(helper: Running) -> None:
    """A reader that is gone is noticed at the next answer."""
    helper.start()
    helper.open_and_set()
    process = helper.processes[-1]
    assert process.stdout
    assert process.stdin
    process.stdout.close()
    process.stdin.write(encode(KeepAlive()))
    process.stdin.flush()
    helper.wait()
    assert helper.limit_w() == 203.0


def test_lease_restores(helper: Running) -> None:
    """Silence for as long as the lease restores, though the parent lives (it may hang)."""
    helper.start()
    helper.open_and_set(lease_s=3.0)
    bye = helper.read()
    assert isinstance(bye, Bye)
    assert bye.reason == "lease_expired"
    assert helper.limit_w() == 203.0


def test_killed_helper_is_repaired_by_the_next_one(helper: Running) -> None:
    """After kill -9 the next start restores before it says hello."""
    helper.start()
    helper.open_and_set()
    helper.processes[-1].kill()
    helper.wait()
    assert helper.limit_w() == 150.0
    hello = helper.start()
    assert [(r.pci_id, r.result) for r in hello.pending] == [(AMD_PCI, "restored")]
    assert helper.limit_w() == 203.0
    assert helper.journal_files() == []


def test_next_start_leaves_what_somebody_else_set(helper: Running) -> None:
    """A limit changed by another hand after the crash is theirs."""
    helper.start()
    helper.open_and_set()
    helper.processes[-1].kill()
    helper.wait()
    (helper.hwmon / "power1_cap").write_text("170000000\n")
    assert [r.result for r in helper.start().pending] == ["left"]
    assert helper.limit_w() == 170.0


def test_next_boot_forgets(helper: Running) -> None:
    """Limits do not survive a restart, so neither does the journal."""
    helper.start()
    helper.open_and_set()
    helper.processes[-1].kill()
    helper.wait()
    (helper.root / "proc/sys/kernel/random/boot_id").write_text(BOOT_ID[::-1])
    assert [r.result for r in helper.start().pending] == ["outdated"]
    assert helper.limit_w() == 150.0


def test_another_card_at_the_address_is_not_touched(helper: Running) -> None:
    """The journal belongs to a card, not to a slot."""
    helper.start()
    helper.open_and_set()
    helper.processes[-1].kill()
    helper.wait()
    (helper.root / "sys/bus/pci/devices" / AMD_PCI / "device").write_text("0x9999\n")
    assert [r.result for r in helper.start().pending] == ["failed"]
    assert helper.limit_w() == 150.0


@pytest.mark.parametrize("is_awake", [True, False])
def test_what_could_not_be_put_back_is_not_taken_for_what_was_found(
    helper: Running, is_awake: bool
) -> None:
    """A device that slept while it was to be put back, and is opened once it is awake."""
    helper.start()
    helper.open_and_set()
    helper.processes[-1].kill()
    helper.wait()
    status = helper.root / "sys/bus/pci/devices" / AMD_PCI / "power/runtime_status"
    status.write_text("suspended\n")
    assert [r.result for r in helper.start().pending] == ["failed"]
    if is_awake:
        status.write_text("active\n")
        helper.open_and_set(160.0)
        helper.ask(Quit())
        assert helper.journal_files() == []
    else:
        assert isinstance(helper.ask(Open(pci_id=AMD_PCI)), Refused)
        helper.ask(Quit())
        assert helper.journal_files()
    assert helper.limit_w() == (203.0 if is_awake else 150.0)


def test_second_helper_is_told_it_is_busy(helper: Running) -> None:
    """Two RigTunes: the second neither controls the device nor disturbs the first."""
    helper.start()
    helper.open_and_set()
    assert helper.start().pending == ()
    reply = helper.ask(Open(pci_id=AMD_PCI))
    assert isinstance(reply, Refused)
    assert reply.code == "busy"
    assert helper.limit_w() == 150.0


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"{}\n",
        b"[]\n",
        b"\x80\x04K\x01.\n",
        b'{"type":"exec","command":"id"}\n',
        b'{"type":"set_power","watts":1e999}\n',
        b'{"type":"set_power","watts":"150"}\n',
        b'{"type":"set_power","watts":150,"path":"/etc/passwd"}\n',
        b'{"type":"set_power","watts":NaN}\n',
        b"[" * 3000 + b"\n",
        b"x" * 9000 + b"\n",
    ],
)
def test_anything_else_ends_it_restored(helper: Running, line: bytes) -> None:
    """What is not exactly a request ends the helper, with the limit put back."""
    helper.start()
    helper.open_and_set()
    reply = helper.ask_raw(line)
    if isinstance(reply, Refused):
        reply = helper.read()
    assert isinstance(reply, Bye)
    assert reply.reason == "not_understood"
    assert helper.wait() == 0
    assert helper.limit_w() == 203.0


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (SetPower(watts=150.0), "not_open"),
        (Open(pci_id="0000:03:00.0/../../x"), "bad_pci_id"),
        (Open(pci_id="0000:09:00.0"), "no_device"),
        (Open(pci_id=AMD_PCI, lease_s=0.1), "bad_lease"),
        (Open(pci_id=AMD_PCI, lease_s=1e6), "bad_lease"),
        (Open(pci_id=AMD_PCI, v=99), "version"),
    ],
)
def test_requests_out_of_order_or_out_of_bounds_are_refused(
    helper: Running, message: Message, code: str
) -> None:
    """A wrong request is refused with its reason and changes nothing."""
    helper.start()
    reply = helper.ask(message)
    assert isinstance(reply, Refused)
    assert reply.code == code
    assert helper.limit_w() == 203.0


def test_one_device_per_helper(helper: Running) -> None:
    """The device is chosen once."""
    helper.start()
    helper.open_and_set()
    reply = helper.ask(Open(pci_id=AMD_PCI))
    assert isinstance(reply, Refused)
    assert reply.code == "already_open"


def test_journal_is_private(helper: Running) -> None:
    """What will be written back cannot be edited by others: folder 0700, files 0600."""
    helper.start()
    helper.open_and_set()
    assert helper.journal.stat().st_mode & 0o077 == 0
    assert all(p.stat().st_mode & 0o077 == 0 for p in helper.journal.iterdir())
    assert all(p.stat().st_uid == os.geteuid() for p in helper.journal.iterdir())
