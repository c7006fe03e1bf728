"""The Windows probe: adapters, counters joined by LUID, sensors of awake cards only."""

import msgspec
import pytest

from app.domain.machine import GpuKind, GpuSample, PowerState, ProbeUnavailable
from probes.reading import Absence
from probes.windows.adapters import device_of, kind_of
from probes.windows.facts import DeviceFacts, PerformanceFacts
from probes.windows.live import LiveWindows
from probes.windows.probe import WindowsProbe
from probes.windows.recording import RecordedWindows, WindowsRecording
from tests.fakes.windows import GIB, INSTANCE, LUID, RADEON, RENDERER, counters, windows


def probe_of(door: RecordedWindows) -> WindowsProbe:
    return WindowsProbe(door, lambda pid: f"program{pid}", clock_ns=lambda: 1)


def read(door: RecordedWindows) -> GpuSample:
    return probe_of(door).sample()[0]


def test_software_and_remote_adapters_are_no_gpus() -> None:
    """Windows' own renderer and a remote session's adapter are left out."""
    remote = msgspec.structs.replace(RADEON, flags=1, luid="00000000:00000009")
    infos = probe_of(windows(RADEON, RENDERER, remote)).identify()
    assert [info.name for info in infos] == ["AMD Radeon RX 7600"]


def test_card_listed_twice_is_one() -> None:
    """Remote sessions may list a card again under the same LUID."""
    assert len(probe_of(windows(RADEON, RADEON)).identify()) == 1


def test_no_hardware_adapter_is_a_normal_state() -> None:
    """Only software adapters, or another system: no probe, with the reason."""
    with pytest.raises(ProbeUnavailable, match="no_data"):
        probe_of(windows(RENDERER))
    with pytest.raises(ProbeUnavailable, match="lib_missing"):
        probe_of(RecordedWindows(WindowsRecording(adapters="lib_missing")))


def test_identity_is_the_pci_address_not_the_luid() -> None:
    """The LUID changes at each boot, so the address is the key and the LUID only joins."""
    info = probe_of(windows()).identify()[0]
    assert (info.key, info.luid) == ("0000:03:00.0", LUID)
    assert info.vram_total_bytes == 8 * GIB
    assert info.shared_total_bytes == 16 * GIB


def test_adapter_without_any_address_is_keyed_by_its_luid() -> None:
    """Where neither kernel nor device manager tells the address, the LUID must do."""
    info = probe_of(windows(msgspec.structs.replace(RADEON, address=None))).identify()[0]
    assert info.pci_id is None
    assert info.key == f"luid:{LUID}"


def test_device_is_found_by_ids_only_when_one_fits() -> None:
    """Two equal cards are told apart by address, never guessed."""
    device = DeviceFacts(
        instance_id=r"PCI\VEN_1002&DEV_7480&SUBSYS_0\X", bus=3, address=0, driver_version="1.2"
    )
    other = msgspec.structs.replace(device, bus=7, driver_version="3.4")
    blind = msgspec.structs.replace(RADEON, address=None)
    assert device_of(blind, (blind,), (device,)) is device
    assert device_of(blind, (blind, blind), (device, other)) is None
    assert device_of(RADEON, (RADEON, RADEON), (other, device)) is device


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, GpuKind.DISCRETE),
        ({"device_id": 0x15BF}, GpuKind.INTEGRATED),
        ({"vendor_id": 0x8086, "address": (0, 2, 0)}, GpuKind.INTEGRATED),
        ({"vendor_id": 0x8086, "address": (3, 0, 0)}, GpuKind.DISCRETE),
        ({"vendor_id": 0x8086, "address": None, "dedicated_bytes": 128 << 20}, GpuKind.INTEGRATED),
        ({"hybrid": "integrated"}, GpuKind.INTEGRATED),
        ({"vendor_id": 0x10DE, "dedicated_bytes": 0}, GpuKind.DISCRETE),
    ],
)
def test_cards_and_processors(changes: dict[str, object], kind: GpuKind) -> None:
    """Role by Windows' word, ids and place; size only as the last resort."""
    assert kind_of(msgspec.structs.replace(RADEON, **changes)) is kind


def test_busy_is_the_busiest_engine() -> None:
    """Programs' shares of one engine add up, engines do not."""
    sample = read(windows(counters=counters(busy=30.0, busy2=20.0, compute=40.0)))
    assert sample.busy_pct == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("value", "shown"), [(120.0, 100.0), (1000.0, None), (float("nan"), None), (-5.0, None)]
)
def test_impossible_utilisation_is_not_shown(value: float, shown: float | None) -> None:
    """A little above 100 is rounding; more, negative or NaN is no reading."""
    assert read(windows(counters=counters(busy=value))).busy_pct == shown


def test_dedicated_and_shared_memory_are_two_numbers() -> None:
    """Shared use, the sign of an overflow, is read per adapter and per program."""
    sample = read(windows(counters=counters(dedicated=7 * GIB, shared=2 * GIB, spill=GIB)))
    assert sample.vram_used_bytes == 7 * GIB
    assert sample.vram_free_bytes == 1 * GIB
    assert sample.shared_used_bytes == 2 * GIB
    assert sample.processes is not None
    assert [(p.name, p.shared_bytes) for p in sample.processes] == [("program11", GIB)]


def test_more_than_the_card_has_is_rejected() -> None:
    """A use above the total is absent with its reason, and so is what is left."""
    sample = read(windows(counters=counters(dedicated=9 * GIB)))
    assert sample.vram_used_bytes is None
    assert sample.vram_free_bytes is None
    assert sample.missing["vram_used_bytes"] == "implausible"


def test_instance_suffixes_lose_no_adapter() -> None:
    """Newer Windows add ``_part_0`` to the instance name."""
    door = windows(
        counters={r"\GPU Adapter Memory(*)\Dedicated Usage": {f"{INSTANCE}_part_0": float(GIB)}}
    )
    assert read(door).vram_used_bytes == GIB


def test_other_adapters_counters_do_not_count() -> None:
    """Only the instances of the adapter's own LUID are read."""
    other = INSTANCE.replace("D3F1", "AAAA")
    door = windows(counters={r"\GPU Adapter Memory(*)\Dedicated Usage": {other: float(GIB)}})
    sample = read(door)
    assert sample.vram_used_bytes is None
    assert sample.missing["vram_used_bytes"] == "no_data"


def test_missing_counters_give_reasons() -> None:
    """A broken counter store leaves the adapter known and every reading absent."""
    sample = read(windows(counters="not_supported"))
    assert sample.power_state is PowerState.UNKNOWN
    assert set(sample.missing.values()) == {"not_supported"}


def test_sensors_of_idle_cards_are_left_alone() -> None:
    """A card without display and work may sleep: its sensors are not asked."""
    hidden = msgspec.structs.replace(RADEON, n_outputs=0)
    idle = read(windows(hidden, counters=counters(busy=0.0)))
    assert idle.temp_c is None
    assert idle.missing["temp_c"] == "released"
    assert read(windows(hidden)).temp_c == pytest.approx(51.2)
    assert read(windows(counters=counters(busy=0.0))).temp_c == pytest.approx(51.2)


def test_zero_is_no_temperature() -> None:
    """Adapters without a sensor report zero."""
    door = windows(performance={LUID: PerformanceFacts()})
    assert read(door).missing["temp_c"] == "not_supported"


def test_elsewhere_everything_is_absent() -> None:
    """On a system that is not Windows the door says why, and nothing raises."""
    door = LiveWindows()
    for answer in (door.adapters(), door.devices(), door.counters(), door.cores()):
        assert isinstance(answer, Absence | tuple | dict)
    door.close()
