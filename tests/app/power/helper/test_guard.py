"""The helper's rules on a GPU whose driver misbehaves."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.power.helper.gpu import DriverRefused
from app.power.helper.guard import Guard
from app.power.helper.journal import Entry, Journal, JournalProblem
from app.power.protocol import Applied, Facts, PutBack, Range, Refused

PCI = "0000:03:00.0"


class OddGpu:
    """A GPU in memory; each oddity is a switch."""

    identity = "card"

    def __init__(self) -> None:
        self.limit: float | None = 200.0
        self.written: list[float] = []
        self.locks: list[tuple[float, float] | None] = []
        self.refuses = self.ignores = self.dies_after_write = False
        self.clamps_to: float | None = None

    def facts(self) -> Facts:
        power = Range(low=100.0, high=200.0, now=200.0, default=200.0)
        clocks = Range(low=600.0, high=2100.0, now=2100.0)
        return Facts(pci_id=PCI, vendor="amd", power=power, clocks=clocks)

    def read_power(self) -> float | None:
        return self.limit

    def write_power(self, watts: float) -> None:
        self.written.append(watts)
        if self.refuses:
            raise DriverRefused("refused_by_driver", "no")
        if not self.ignores:
            self.limit = watts if self.clamps_to is None else self.clamps_to
        if self.dies_after_write:
            raise KeyboardInterrupt

    def lock_clocks(self, low_mhz: float, high_mhz: float) -> None:
        self.locks.append((low_mhz, high_mhz))

    def reset_clocks(self) -> None:
        self.locks.append(None)

    def close(self) -> None:
        pass


@pytest.fixture
def gpu() -> OddGpu:
    return OddGpu()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def make_guard(gpu: OddGpu, journal: Journal) -> Guard:
    return Guard(gpu, journal, Entry(pci_id=PCI, identity="card", boot_id="b", pid=1))


def code_of(reply: Applied | Refused) -> str:
    return reply.code if isinstance(reply, Refused) else "applied"


@pytest.mark.parametrize("watts", [0.0, -1.0, 99.9, 200.1, 1e300, float("nan"), float("inf")])
def test_nothing_outside_the_range_is_written(gpu: OddGpu, journal: Journal, watts: float) -> None:
    """A value below the floor or above what was found is refused, never clamped (B20)."""
    assert code_of(make_guard(gpu, journal).set_power(watts, 0.0)) == "out_of_range"
    assert gpu.written == []


def test_journal_comes_first(gpu: OddGpu, journal: Journal) -> None:
    """A helper that dies while writing has left the old value on disk."""
    gpu.dies_after_write = True
    with pytest.raises(KeyboardInterrupt):
        make_guard(gpu, journal).set_power(150.0, 0.0)
    (entry,) = journal.entries()
    assert entry.old_w == 200.0
    gpu.dies_after_write = False
    assert [r.result for r in Guard(gpu, journal, entry).put_back()] == ["restored"]
    assert gpu.limit == 200.0


def test_without_a_journal_nothing_is_set(
    gpu: OddGpu, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk means no change."""

    def full(_entry: Entry) -> None:
        raise JournalProblem("No space left on device")

    monkeypatch.setattr(journal, "write", full)
    assert code_of(make_guard(gpu, journal).set_power(150.0, 0.0)) == "journal_failed"
    assert code_of(make_guard(gpu, journal).lock_clocks(1500.0, 0.0)) == "journal_failed"
    assert (gpu.written, gpu.locks) == ([], [])


def test_driver_that_refuses(gpu: OddGpu, journal: Journal) -> None:
    """A refusal is reported and leaves nothing pending."""
    gpu.refuses = True
    assert code_of(make_guard(gpu, journal).set_power(150.0, 0.0)) == "refused_by_driver"
    assert journal.entries() == ()


def test_driver_that_ignores(gpu: OddGpu, journal: Journal) -> None:
    """Accepted but not applied is a failure (C01: success with a warning)."""
    gpu.ignores = True
    assert code_of(make_guard(gpu, journal).set_power(150.0, 0.0)) == "not_applied"
    assert journal.entries() == ()


def test_driver_that_sets_another_value(gpu: OddGpu, journal: Journal) -> None:
    """A third value is put back at once."""
    gpu.clamps_to = 180.0
    guard = make_guard(gpu, journal)
    assert code_of(guard.set_power(150.0, 0.0)) == "not_applied"
    gpu.clamps_to = None
    guard.put_back()
    assert gpu.limit == 200.0


def test_limit_of_somebody_else_is_neither_changed_nor_restored(
    gpu: OddGpu, journal: Journal
) -> None:
    """After another hand turned the limit, it is theirs."""
    guard = make_guard(gpu, journal)
    guard.set_power(150.0, 0.0)
    gpu.limit = 170.0
    assert code_of(guard.set_power(140.0, 10.0)) == "changed_elsewhere"
    assert [r.result for r in guard.put_back()] == ["left"]
    assert gpu.limit == 170.0


def test_changes_are_five_seconds_apart(gpu: OddGpu, journal: Journal) -> None:
    """Not even RigTune may make the limit flutter."""
    guard = make_guard(gpu, journal)
    guard.set_power(150.0, 100.0)
    assert code_of(guard.set_power(140.0, 104.9)) == "too_soon"
    assert code_of(guard.set_power(140.0, 105.0)) == "applied"


def test_a_limit_next_to_the_one_found_is_put_back_too(gpu: OddGpu, journal: Journal) -> None:
    """Half a watt below what was found is not what was found."""
    guard = make_guard(gpu, journal)
    guard.set_power(199.5, 0.0)
    assert [r.result for r in guard.put_back()] == ["restored"]
    assert gpu.limit == 200.0


def test_a_driver_that_ignores_the_way_back_is_noticed(gpu: OddGpu, journal: Journal) -> None:
    """Near what was found by our own doing, and unmoved by the restore: it is not back yet."""
    guard = make_guard(gpu, journal)
    guard.set_power(199.5, 0.0)
    gpu.ignores = True
    assert [r.result for r in guard.put_back()] == ["failed"]
    gpu.ignores = False
    assert [r.result for r in guard.put_back()] == ["restored"]
    assert gpu.limit == 200.0


def test_failed_restore_stays_in_the_journal(gpu: OddGpu, journal: Journal) -> None:
    """What could not be put back is tried again later."""
    guard = make_guard(gpu, journal)
    guard.set_power(150.0, 0.0)
    gpu.refuses = True
    assert [r.result for r in guard.put_back()] == ["failed"]
    assert len(journal.entries()) == 1
    gpu.refuses = False
    assert [r.result for r in guard.put_back()] == ["restored"]
    assert journal.entries() == ()


def test_clocks_are_locked_and_reset(gpu: OddGpu, journal: Journal) -> None:
    """A lock is undone by the driver's own reset."""
    guard = make_guard(gpu, journal)
    assert code_of(guard.lock_clocks(1500.0, 0.0)) == "applied"
    assert guard.put_back() == (PutBack(pci_id=PCI, knob="clocks", result="restored"),)
    assert gpu.locks == [(600.0, 1500.0), None]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["set", "other", "restore", "refuse", "ignore", "obey", "unreadable"]),
            st.floats(-50.0, 400.0),
        ),
        max_size=25,
    )
)
def test_any_sequence_writes_only_allowed_values(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, float]]
) -> None:
    """Whatever is asked and whatever the driver does, writes are allowed values or the old one."""
    gpu, now_s = OddGpu(), 0.0
    guard = make_guard(gpu, Journal(tmp_path_factory.mktemp("j") / "journal"))
    foreign = False
    for name, value in steps:
        now_s += 7.0
        match name:
            case "set":
                guard.set_power(value, now_s)
            case "other":
                gpu.limit, foreign = abs(value), True
            case "restore":
                guard.put_back()
            case "unreadable":
                gpu.limit, foreign = None, True
            case _:
                gpu.refuses, gpu.ignores = name == "refuse", name == "ignore"
    gpu.refuses = gpu.ignores = False
    guard.put_back()
    assert all(100.0 <= watts <= 200.0 for watts in gpu.written)
    assert foreign or gpu.limit == 200.0
