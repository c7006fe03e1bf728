"""Fuzzes the power helper's protocol on two fake machines, whose drivers misbehave at random.

    python -m tests.fakes.helper_fuzz [MESSAGES] [SEED]

After every line the limits lie within what may be set (or where somebody else put them), every
request has one answer, and nothing but the helper's own end leaves it; after every end everything
is as it was found.
"""

import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.power.helper.gpu import Gpu
from app.power.helper.journal import Journal
from app.power.helper.nvidia import NvidiaGpu
from app.power.helper.serve import Helper, Stop
from app.power.helper.sysfs import SysfsGpu
from app.power.protocol import (
    Bye,
    Hello,
    KeepAlive,
    Message,
    Open,
    Quit,
    Restore,
    SetClocks,
    SetPower,
    decode_reply,
    encode,
)
from tests.fakes.nvml_power import NO_PERMISSION, FakeNvml
from tests.fakes.power_sysfs import AMD_PCI, BOOT_ID, NVIDIA_PCI, limit_w, make_amd

FOUND_W, FLOOR_W = 203.0, 101.5
FOUND_MW, FLOOR_MW = 350_000, 175_000
NUMBERS = (0.0, -1.0, 1.0, 101.4, 101.5, 150.0, 203.0, 203.1, 1e9, 1e308, -0.0, 5e-324)
ODD = (
    b"\n", b"{}\n", b"[]\n", b"null\n", b'"open"\n', b"\x00\xff\n", b'{"type":"open"}\n',
    b'{"type":"set_power","watts":NaN}\n', b'{"type":"set_power","watts":1e999}\n',
    b'{"type":"set_power","watts":"150"}\n', b'{"type":"set_power","watts":150,"watts":9999}\n',
    b'{"type":"set_power","watts":150,"force":true}\n', b'{"type":"write","path":"/etc/passwd"}\n',
    b'{"type":"open","pci_id":"../../etc"}\n', b'{"type":"restore","knob":["power_limit"]}\n',
    b"[" * 4000 + b"\n", b'{"type":"set_power","watts":' + b"9" * 3000 + b"}\n",
    b'{"type":"quit","type":"set_power","watts":1}\n', '{"type":"quit\u200b"}\n'.encode(),
)  # fmt: skip


class Fuzzed:
    """Two fake machines, and one helper after the other on them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.hwmon = make_amd(folder / "root")
        self.root, self.folder = folder / "root", folder
        self.nvml = FakeNvml()
        self.now_s = 1000.0
        self.foreign_w: float | None = None
        self.replies: list[bytes] = []
        self.n_ends = self.n_applied = 0
        self.helper = self.start()

    def start(self) -> Helper:
        """Start the next helper; it puts back what the one before left."""
        journal = Journal(self.folder / "journal")
        helper = Helper(journal, self.open_gpu, BOOT_ID, self.send, lambda: self.now_s)
        helper.begin()
        assert isinstance(decode_reply(self.replies.pop()), Hello)
        return helper

    def open_gpu(self, pci_id: str) -> Gpu:
        if pci_id == NVIDIA_PCI:
            return NvidiaGpu(None, pci_id, self.nvml)
        return SysfsGpu(self.root, pci_id)

    def send(self, message: Message) -> None:
        self.replies.append(encode(message))

    def step(self) -> None:
        """Let something happen, send one line, and check."""
        self.disturb()
        line = self.line()
        self.replies.clear()
        try:
            self.helper.handle(line)
            assert len(self.replies) == 1, (line, self.replies)
            self.n_applied += b'"applied"' in self.replies[0]
        except Stop as stop:
            self.end(str(stop))
        for reply in self.replies:
            decode_reply(reply)
        self.check()

    def end(self, reason: str) -> None:
        """End this helper as its own loop does, and start the next one."""
        self.mend()
        self.helper.end(reason)
        assert isinstance(decode_reply(self.replies[-1]), Bye)
        self.n_ends += 1
        expected = FOUND_W if self.foreign_w is None else self.foreign_w
        assert abs(limit_w(self.hwmon) - expected) < 0.001, limit_w(self.hwmon)
        assert self.nvml.limit == FOUND_MW
        self.hwmon.joinpath("power1_cap").write_text(f"{round(FOUND_W * 1e6)}\n")
        self.foreign_w = None
        kept, self.replies = self.replies, []
        self.helper = self.start()
        self.replies = kept

    def check(self) -> None:
        """Nothing outside the range was ever set."""
        now = limit_w(self.hwmon)
        assert FLOOR_W <= now <= FOUND_W or now == self.foreign_w, now
        for name, args in self.nvml.calls:
            assert name != "limit" or FLOOR_MW <= args[0] <= FOUND_MW, args
            assert name != "lock" or 600 <= args[0] <= args[1] <= 2100, args
        self.nvml.calls.clear()

    def disturb(self) -> None:
        """Time passes; now and then the driver changes its mind, or somebody sets a limit."""
        what = self.random.random()
        self.now_s += self.random.choice((0.0, 0.1, 1.0, 6.0, 6.0))
        if what < 0.002:
            self.now_s += 100.0
        elif what < 0.004:
            self.now_s -= 50.0
        elif what < 0.02:
            self.nvml.set_error = NO_PERMISSION
        elif what < 0.04:
            self.nvml.applies = False
        elif what < 0.1:
            self.mend()
        elif what < 0.102:
            self.foreign_w = 95.0  # below what we would ever set, so it cannot be taken for ours
            self.hwmon.joinpath("power1_cap").write_text("95000000\n")

    def mend(self) -> None:
        """Make the driver work again: a refused restore is another test's subject."""
        self.nvml.set_error, self.nvml.applies = None, True

    def line(self) -> bytes:
        """Return the next line: mostly requests, some damaged, some no messages at all."""
        kind = self.random.random()
        if kind < 0.01:
            return self.random.choice(ODD)
        if kind < 0.02:
            return self.random.randbytes(self.random.randrange(1, 300)) + b"\n"
        line = encode(self.message())
        return self.damaged(line) if kind < 0.04 else line

    def message(self) -> Message:
        """Return a request, sensible or not."""
        pick = self.random.random()
        if pick < 0.3:
            address = self.random.choice((AMD_PCI, NVIDIA_PCI, "0000:09:00.0", "", "x" * 200))
            return Open(pci_id=address, lease_s=self.random.choice((10.0, 30.0, 0.0, 1e9)))
        if pick < 0.7:
            wild = self.random.choice(NUMBERS)
            return SetPower(watts=self.random.choice((self.random.uniform(90, 360), wild)))
        if pick < 0.8:
            return SetClocks(high_mhz=self.random.choice((self.random.uniform(500, 2300), -1.0)))
        if pick < 0.9:
            return Restore(knob=self.random.choice((None, "power_limit", "clocks", "fan")))
        return KeepAlive() if pick < 0.99 else Quit()

    def damaged(self, line: bytes) -> bytes:
        """Flip, drop or repeat a few bytes."""
        data = bytearray(line)
        for _ in range(self.random.randrange(1, 4)):
            at = self.random.randrange(len(data))
            change = self.random.randrange(3)
            if change == 0:
                data[at] ^= 1 << self.random.randrange(8)
            elif change == 1 and len(data) > 2:
                del data[at]
            else:
                data[at:at] = data[at : at + 3]
        return bytes(data)


def fuzz(folder: Path, n_messages: int, seed: int) -> Fuzzed:
    """Send that many lines; raises ``AssertionError`` where a promise is broken."""
    fuzzed = Fuzzed(folder, seed)
    for _ in range(n_messages):
        fuzzed.step()
    fuzzed.end("done")
    return fuzzed


def main(arguments: list[str]) -> None:
    """Fuzz in a temporary folder and print what happened."""
    n_messages = int(arguments[0]) if arguments else 100_000
    seed = int(arguments[1]) if len(arguments) > 1 else 1
    begin_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        done = fuzz(Path(folder), n_messages, seed)
    elapsed_s = time.perf_counter() - begin_s
    print(
        f"{n_messages} messages, seed {seed}: {done.n_applied} changes applied, "
        f"{done.n_ends} ends, nothing outside the range, all put back ({elapsed_s:.0f} s)"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
