"""A recorded Windows: the same answers again, and nothing that names its owner."""

import msgspec

from app.domain.machine import DriverReset
from probes.reading import Absence
from probes.windows.facts import CacheFacts, CoreFacts, DeviceFacts
from probes.windows.recording import RecordedWindows, WindowsRecording, take
from probes.windows.settings import GRAPHICS, PREFERENCES
from tests.fakes.windows import RADEON, dword, text, windows

SERIAL_TABLE = bytes([17, 24, *bytes(22)]) + b"SECRET-SERIAL\0\0"


def test_recording_gives_the_same_answers() -> None:
    """Every answer of the door survives recording, writing and reading."""
    door = windows(
        graphics={"TdrDelay": dword(9)},
        devices=(DeviceFacts(instance_id=r"PCI\VEN_1002&DEV_7480\4&1a", bus=3),),
        cores=(CoreFacts(efficiency=1, cpus=(0, 1)),),
        caches=(CacheFacts(level=3, n_bytes=1 << 25, cpus=(0, 1)),),
        n_nodes=2,
        features=("avx",),
        resets=(DriverReset(provider="Display", event_id=4101),),
    )
    raw = msgspec.json.encode(take(door))
    played = RecordedWindows(msgspec.json.decode(raw, type=WindowsRecording))
    assert played.adapters() == door.adapters()
    assert played.counters() == door.counters()
    assert played.performance(RADEON.luid) == door.performance(RADEON.luid)
    assert played.value(GRAPHICS, "TdrDelay") == dword(9)
    assert played.cores() == door.cores()
    assert played.caches() == door.caches()
    assert played.n_nodes() == 2
    assert played.features() == ("avx",)
    assert played.resets() == door.resets()


def test_a_recorded_values_name_may_be_written_in_any_case() -> None:
    """The registry takes no note of case: what counts on the machine counts in its recording."""
    played = RecordedWindows(WindowsRecording(registry={GRAPHICS: {"TDRDELAY": dword(9)}}))
    assert played.value(GRAPHICS, "TdrDelay") == dword(9)
    assert played.value(GRAPHICS, "TdrLevel") is Absence.NO_DATA


def test_owner_is_not_in_the_recording() -> None:
    """Folders of programs, device serials and firmware texts are left out."""
    door = windows(
        preferences={r"C:\Users\Tina\llama.exe": text("GpuPreference=2;")},
        devices=(DeviceFacts(instance_id=r"PCI\VEN_1002&DEV_7480&SUBSYS_1\4&SERIAL&0"),),
        firmware=SERIAL_TABLE.hex(),
    )
    raw = msgspec.json.encode(take(door)).decode()
    assert "Tina" not in raw
    assert "4&SERIAL" not in raw
    assert b"SECRET".hex() not in raw
    played = RecordedWindows(msgspec.json.decode(raw, type=WindowsRecording))
    assert played.value_names(PREFERENCES) == ("llama.exe",)
    assert isinstance(played.firmware(), bytes)


def test_absent_answers_keep_their_reason() -> None:
    """Why something was absent is recorded, too."""
    door = windows(counters="not_supported", cores="no_data", resets="no_permission")
    played = RecordedWindows(take(door))
    assert played.counters() is Absence.NOT_SUPPORTED
    assert played.cores() is Absence.NO_DATA
    assert played.resets() is Absence.NO_PERMISSION


def test_machine_that_was_no_windows_has_no_answers() -> None:
    """Without a recording every question does not apply."""
    door = RecordedWindows(None)
    assert door.adapters() is Absence.NOT_APPLICABLE
    assert door.value_names(GRAPHICS) == ()
    assert door.firmware() is Absence.NO_DATA


def test_a_reason_that_is_none_is_an_error() -> None:
    """A recording that somebody edited plays as far as it can."""
    machine = WindowsRecording(counters="N/A", adapters="", cores="lost")
    door = RecordedWindows(machine)
    assert (door.counters(), door.adapters(), door.cores()) == (
        Absence.ERROR, Absence.ERROR, Absence.LOST,
    )  # fmt: skip
