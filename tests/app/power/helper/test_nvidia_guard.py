"""NVIDIA through the helper's own rules: what drivers really answer, read back every time."""

from pathlib import Path

import pytest

from app.power.helper.guard import Guard
from app.power.helper.journal import Entry, Journal
from app.power.helper.nvidia import NvidiaGpu
from app.power.protocol import Applied, Refused
from tests.fakes.nvml_power import NOT_SUPPORTED, FakeNvml
from tests.fakes.power_sysfs import NVIDIA_PCI


class Bench:
    def __init__(self, folder: Path) -> None:
        self.nvml = FakeNvml()
        self.journal = Journal(folder / "journal")
        self.gpu = NvidiaGpu(None, NVIDIA_PCI, self.nvml)
        entry = Entry(pci_id=NVIDIA_PCI, identity=self.gpu.identity, boot_id="b", pid=1)
        self.guard = Guard(self.gpu, self.journal, entry)

    def code(self, watts: float, now_s: float = 100.0) -> str:
        reply = self.guard.set_power(watts, now_s)
        return reply.code if isinstance(reply, Refused) else "applied"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_limit_is_set_read_back_and_put_back(bench: Bench) -> None:
    """The good case, in milliwatts."""
    reply = bench.guard.set_power(280.0, 100.0)
    assert isinstance(reply, Applied)
    assert (reply.before, reply.after) == (350.0, 280.0)
    assert [r.result for r in bench.guard.put_back()] == ["restored"]
    assert bench.nvml.limit == 350_000
    assert bench.journal.entries() == ()


def test_refused_as_on_laptops_since_530(bench: Bench) -> None:
    """A range is displayed and the setter says not supported: said, nothing is pending."""
    bench.nvml.set_error = NOT_SUPPORTED
    assert bench.code(280.0) == "refused_by_driver"
    assert bench.nvml.limit == 350_000
    assert bench.journal.entries() == ()


def test_accepted_and_not_applied(bench: Bench) -> None:
    """Success without effect (C01) is a refusal."""
    bench.nvml.applies = False
    assert bench.code(280.0) == "not_applied"
    assert bench.journal.entries() == ()


def test_reset_by_the_driver(bench: Bench) -> None:
    """The limit is back at what was found by itself: nothing left to restore, and set anew."""
    assert bench.code(280.0) == "applied"
    bench.nvml.limit = 350_000
    assert [r.result for r in bench.guard.put_back()] == ["unchanged"]
    assert bench.code(280.0, 200.0) == "applied"


def test_lost_while_capped(bench: Bench) -> None:
    """A GPU that answers no more keeps its entry, so that the next start tries again."""
    assert bench.code(280.0) == "applied"
    bench.nvml.limit_readable, bench.nvml.set_error = False, 15
    assert [r.result for r in bench.guard.put_back()] == ["failed"]
    assert [e.old_w for e in bench.journal.entries()] == [350.0]


@pytest.mark.parametrize("watts", [174.9, 350.1, 100.0, 385.0, 0.0])
def test_outside_the_range_nothing_is_asked_of_the_driver(bench: Bench, watts: float) -> None:
    """Neither above what was found nor below half the default, though the driver would."""
    assert bench.code(watts) == "out_of_range"
    assert bench.nvml.calls == []
