"""The lease on the devices."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.rig.lease import Holder, Lease

_HOLD = """
import sys
from pathlib import Path
from app.rig.lease import Lease
with Lease("tune", Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def start_holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[3],
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_second_holder_is_told_who_has_the_devices(tmp_path: Path) -> None:
    """Another process gets ``busy`` with the holder's purpose and process id."""
    path = tmp_path / "devices.lock"
    holder = start_holder(path)
    try:
        with pytest.raises(EnvironmentProblem) as caught, Lease("chat", path):
            pass
    finally:
        end(holder)
    assert caught.value.info.code == "busy"
    assert f"tune, process {holder.pid}" in caught.value.info.message


def test_killed_holder_leaves_the_devices_free(tmp_path: Path) -> None:
    """After kill -9 the next one gets the devices at once."""
    path = tmp_path / "devices.lock"
    end(start_holder(path))
    with Lease("chat", path):
        assert '"chat"' in path.read_text()


def test_released_devices_can_be_taken_again(tmp_path: Path) -> None:
    """Leaving the lease gives the devices back and takes the name out of the file."""
    path = tmp_path / "devices.lock"
    with Lease("bench", path):
        pass
    assert path.read_text() == ""
    with Lease("tune", path):
        pass


def test_same_process_cannot_hold_twice(tmp_path: Path) -> None:
    """Two jobs of one process exclude each other as well."""
    path = tmp_path / "devices.lock"
    with Lease("tune", path), pytest.raises(EnvironmentProblem) as caught, Lease("chat", path):
        pass
    assert caught.value.info.code == "busy"


def test_damaged_lock_file_does_not_matter(tmp_path: Path) -> None:
    """Whatever is in the file, an unlocked one is free."""
    path = tmp_path / "devices.lock"
    path.write_bytes(b"\xff{not json")
    with Lease("tune", path):
        assert '"tune"' in path.read_text()


def test_folder_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    """A lock file that cannot be made is a sentence, not a traceback."""
    with pytest.raises(EnvironmentProblem) as caught, Lease("tune", tmp_path / "no" / "lock"):
        pass
    assert caught.value.info.code == "not_writable"


def shared(path: Path, asked: list[Holder], *, fits: bool = True) -> Lease:
    """Return a lease that notes whom it is asked to share with."""

    def room(first: Holder) -> None:
        asked.append(first)
        if not fits:
            raise EnvironmentProblem("busy", "no room", "")

    return Lease("serve", path, room=room)


def test_two_share_where_both_fit_and_a_third_does_not(tmp_path: Path) -> None:
    """The second one is asked about its room and knows who was there; two are the most."""
    path, asked = tmp_path / "devices.lock", list[Holder]()
    with shared(path, asked) as first:
        assert first.beside is None
        with shared(path, asked) as second:
            assert second.beside == asked[0]
            with pytest.raises(EnvironmentProblem) as caught, shared(path, asked):
                pass
    assert caught.value.info.code == "busy"
    assert len(asked) == 1
    with shared(path, asked) as again:
        assert again.beside is None


def test_one_without_room_leaves_the_place_free(tmp_path: Path) -> None:
    """A refused one holds nothing: the next that fits gets in."""
    path, asked = tmp_path / "devices.lock", list[Holder]()
    with shared(path, asked):
        with pytest.raises(EnvironmentProblem), shared(path, asked, fits=False):
            pass
        with shared(path, asked) as second:
            assert second.beside is not None


@pytest.mark.parametrize("n_held", [1, 2])
def test_a_measurement_shares_with_nobody(tmp_path: Path, n_held: int) -> None:
    """It starts beside no model, whichever place that has, and no model starts beside it."""
    path, asked = tmp_path / "devices.lock", list[Holder]()
    with shared(path, asked) as first, shared(path, asked):
        if n_held == 1:
            first.__exit__(None, None, None)
        with pytest.raises(EnvironmentProblem), Lease("tune", path):
            pass
    with Lease("tune", path), pytest.raises(EnvironmentProblem) as caught, shared(path, []):
        pass
    assert "tune" in caught.value.info.message
