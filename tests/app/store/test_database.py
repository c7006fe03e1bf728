"""The file itself: versions, damage, locks, threads."""

import sqlite3
import threading
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.store import Store, database, schema

GOLDEN = Path(__file__).parents[2] / "golden" / "store_v1.sql"


def _golden(path: Path, version: int = 1 << 16) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(GOLDEN.read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    return path


def test_the_default_place_is_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a path the store lies in the user's data folder."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))
    with Store.open() as store:
        assert store.path == tmp_path / "data" / "rigtune.db"
        assert store.notices == ()
    assert store.path.exists()


def test_a_file_of_version_1_opens(tmp_path: Path) -> None:
    """What the first version wrote is all readable today, and the file is of today's version."""
    with Store.open(_golden(tmp_path / "old.db")) as store:
        (sweep,) = store.sweeps()
        result = store.sweep(sweep.id)
        assert result.recommended is not None
        assert result.recommended.settings.n_gpu_layers == 5
        assert [t.outcome for t in result.trials] == ["ok", "out_of_memory"]
        (profile,) = store.profiles()
        assert (profile.id, profile.name) == ("abc234", "Quick")
        (hit,) = store.search_messages("tides")
        assert hit.title == "The sea"
        assert store._rows("PRAGMA user_version")[0][0] == schema.VERSION
        assert store.notices == ()


def test_upgrades_run_once_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older file takes every step up to today's version and keeps its content."""
    steps = {
        1 << 16: ((1 << 16) + 1, ("ALTER TABLE profiles ADD COLUMN a TEXT",)),
        (1 << 16) + 1: (2 << 16, ("ALTER TABLE profiles ADD COLUMN b TEXT",)),
    }
    path = _golden(tmp_path / "old.db")
    monkeypatch.setattr(schema, "UPGRADES", steps)
    monkeypatch.setattr(schema, "VERSION", 2 << 16)
    monkeypatch.setattr(schema, "MAJOR", 2)
    for _ in range(2):
        with Store.open(path) as store:
            assert store._rows("SELECT a, b FROM profiles")[0]["b"] is None
            assert len(store._rows("SELECT id FROM sweeps")) == 1


def test_a_failed_upgrade_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that fails leaves the old file as it was."""
    path = _golden(tmp_path / "old.db")
    step = ("ALTER TABLE profiles ADD COLUMN a TEXT", "not SQL")
    monkeypatch.setattr(schema, "UPGRADES", {1 << 16: ((1 << 16) + 1, step)})
    monkeypatch.setattr(schema, "VERSION", (1 << 16) + 1)
    with pytest.raises(sqlite3.OperationalError):
        Store.open(path)
    monkeypatch.undo()
    with Store.open(path) as store:
        assert "a" not in store._rows("SELECT * FROM profiles")[0].keys()  # noqa: SIM118 - a Row


def test_a_newer_minor_version_is_written_on(tmp_path: Path) -> None:
    """Additions of a newer minor version do not keep this one from writing."""
    path = tmp_path / "new.db"
    with Store.open(path) as store:
        store._rows(f"PRAGMA user_version = {schema.VERSION + 7}")
    with Store.open(path) as store:
        store.start_conversation(title="more")
        assert not store.read_only
        assert store._rows("PRAGMA user_version")[0][0] == schema.VERSION + 7


def test_a_newer_major_version_is_read_only(tmp_path: Path) -> None:
    """A file of a newer major version is readable, said to be newer, and never written."""
    path = _golden(tmp_path / "new.db", (schema.MAJOR + 1) << 16)
    before = path.read_bytes()
    with Store.open(path) as store:
        assert store.read_only
        assert "newer" in store.notices[0]
        assert len(store.profiles()) == 1
        with pytest.raises(EnvironmentProblem) as caught:
            store.start_conversation(title="more")
        assert caught.value.info.code == "database_newer"
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["garbage", "truncated", "overwritten"])
def test_a_damaged_file_is_set_aside(tmp_path: Path, damage: str) -> None:
    """Damage is named, the damaged file kept beside, and RigTune goes on with a new one."""
    path = _golden(tmp_path / "rigtune.db")
    content = path.read_bytes()
    half = len(content) // 2
    broken = {
        "garbage": b"<html>" * 1000,
        "truncated": content[:half],
        "overwritten": content[:4096] + b"\xff" * (len(content) - 4096),
    }[damage]
    path.write_bytes(broken)
    with Store.open(path) as store:
        assert store.sweeps() == ()
        (aside,) = tmp_path.glob("rigtune.db.broken-*")
        assert str(aside) in store.notices[0]
        assert aside.read_bytes() == broken
    with Store.open(path) as store:
        assert store.notices == ()


def test_an_unreadable_record_is_a_sentence(tmp_path: Path) -> None:
    """A record that is no record is a problem with the file's name, not a crash."""
    with Store.open(_golden(tmp_path / "rigtune.db")) as store:
        store._connection().execute("UPDATE trials SET record = '{}'")
        with pytest.raises(EnvironmentProblem) as caught:
            store.sweep(1)
        assert caught.value.info.code == "database_broken"


@pytest.mark.parametrize("place", ["gone/rigtune.db", "."])
def test_an_impossible_place_is_a_sentence(tmp_path: Path, place: str) -> None:
    """A folder that is not there, or a folder in the file's place, is reported."""
    with pytest.raises(EnvironmentProblem) as caught:
        Store.open(tmp_path / place)
    assert caught.value.info.code == "not_writable"


def test_a_busy_file_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program that holds the file too long is named as the cause; reading goes on."""
    path = tmp_path / "rigtune.db"
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.0)
    with Store.open(path) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(EnvironmentProblem) as caught:
            store.start_conversation(title="x")
        assert caught.value.info.code == "database_busy"
        assert store.conversations() == ()
        other.close()
        store.start_conversation(title="x")


def test_every_thread_has_its_own_connection(tmp_path: Path) -> None:
    """Threads write through connections of their own; an ended thread's is closed."""
    with Store.open(tmp_path / "rigtune.db") as store:
        for n in range(3):
            thread = threading.Thread(target=store.start_conversation, kwargs={"title": str(n)})
            thread.start()
            thread.join()
        assert {c.title for c in store.conversations()} == {"0", "1", "2"}
        assert len(store._connections) == 2, "this thread and the last one that ended"


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """An exception inside a transaction undoes all of it, and the next one works."""
    with Store.open(tmp_path / "rigtune.db") as store:
        with pytest.raises(KeyError):
            _fail_inside_a_transaction(store)
        assert store.conversations() == ()
        store.start_conversation(title="next")


def _fail_inside_a_transaction(store: Store) -> None:
    with store._write() as connection:
        connection.execute(
            "INSERT INTO conversations (title, system, model_name, created_utc, updated_utc)"
            " VALUES ('t', '', '', 'now', 'now')"
        )
        raise KeyError
