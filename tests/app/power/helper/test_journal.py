"""The helper's journal: private, whole, and never believed when it is not."""

import sys
from pathlib import Path

import pytest

from app.power.helper.journal import Entry, Journal, JournalProblem

ENTRY = Entry(
    pci_id="0000:03:00.0", identity="card", boot_id="b", pid=1, old_w=203.0, ours_w=(150.0,)
)


def test_entries_survive(tmp_path: Path) -> None:
    """What is written is read by the next run, and gone once removed."""
    Journal(tmp_path / "j").write(ENTRY)
    journal = Journal(tmp_path / "j")
    assert journal.entries() == (ENTRY,)
    journal.remove(ENTRY.pci_id)
    assert journal.entries() == ()


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    """What others can write would be written back with root's rights."""
    folder = tmp_path / "j"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(JournalProblem):
        Journal(folder)


def test_link_is_refused(tmp_path: Path) -> None:
    """A link in place of the folder is not followed."""
    (tmp_path / "real").mkdir()
    (tmp_path / "j").symlink_to(tmp_path / "real")
    with pytest.raises(JournalProblem):
        Journal(tmp_path / "j")


@pytest.mark.parametrize("text", ["", "{", '{"pci_id": 5}', "\x00" * 100])
def test_damaged_entry_is_set_aside(tmp_path: Path, text: str) -> None:
    """A file that is no entry changes nothing and does not come up again."""
    journal = Journal(tmp_path / "j")
    (tmp_path / "j" / "0000-03-00.0.json").write_text(text)
    assert journal.entries() == ()
    assert [p.suffix for p in (tmp_path / "j").iterdir()] == [".bad"]


def test_names_are_addresses_only(tmp_path: Path) -> None:
    """No other file can be named through an entry."""
    with pytest.raises(JournalProblem):
        Journal(tmp_path / "j").remove("../../etc/passwd")


@pytest.mark.skipif(sys.platform == "win32", reason="another lock")
def test_lock_is_exclusive(tmp_path: Path) -> None:
    """One helper per device."""
    journal = Journal(tmp_path / "j")
    with journal.lock(ENTRY.pci_id) as first, journal.lock(ENTRY.pci_id) as second:
        assert (first, second) == (True, False)
