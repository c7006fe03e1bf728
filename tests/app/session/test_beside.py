"""A second engine beside the first: only with room, and with one governor."""

from pathlib import Path

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.domain.settings import Settings
from app.rig.lease import Lease
from app.session import Chat
from app.session.beside import room
from tests.fakes.faulty_worker import faulty
from tests.fakes.records import a_model

SETTINGS = Settings(n_gpu_layers=0, n_ctx=512, n_threads=1)
MODEL = msgspec.structs.replace(a_model(), file_bytes=1000)
GIB = 1 << 30


def judged(verdict: Verdict) -> MemoryEstimate:
    host = DeviceMemory(device="host", total_bytes=6 * GIB, free_bytes=5 * GIB, verdict=verdict)
    return MemoryEstimate(devices=(host,), source=MemorySource.FORMULA, verdict=verdict)


def a_chat(lock: Path, verdict: Verdict) -> Chat:
    lease = Lease("chat", lock, room=room(lambda: judged(verdict)))
    return Chat(MODEL, SETTINGS, faulty(), None, ("first",), lease=lease)


def test_two_models_that_fit_are_loaded_together(tmp_path: Path) -> None:
    """The second one says that the devices are shared; alone it does not."""
    lock = tmp_path / "devices.lock"
    with a_chat(lock, Verdict.DOES_NOT_FIT) as first:
        assert first.notes == ("first",)
        with a_chat(lock, Verdict.FITS) as second:
            assert first.is_running
            assert second.is_running
            assert "shared with this RigTune itself (chat)" in second.notes[-1]
    with a_chat(lock, Verdict.DOES_NOT_FIT) as alone:
        assert alone.notes == ("first",)


@pytest.mark.parametrize("verdict", [Verdict.TIGHT, Verdict.DOES_NOT_FIT, Verdict.UNKNOWN])
def test_one_without_room_is_refused_with_the_figures(tmp_path: Path, verdict: Verdict) -> None:
    """Who is there, what is missing and what to do are said; nothing is loaded."""
    lock = tmp_path / "devices.lock"
    with a_chat(lock, Verdict.FITS) as first:
        with pytest.raises(EnvironmentProblem) as caught:
            a_chat(lock, verdict).__enter__()
        assert first.is_running
    info = caught.value.info
    assert info.code == "busy"
    assert "this RigTune itself (chat)" in info.message
    assert "RAM: it needs 6.00\u00a0GiB" in info.message
    assert info.hint
