"""Bytes and structures that Windows defines: sizes, positions, damaged data."""

import ctypes
import struct
from pathlib import Path

import pytest

from probes.reading import Absence
from probes.smbios import memory_modules, structures
from probes.windows import d3dkmt, devices, dxgi, events, layout, pdh
from probes.windows.dll import Guid, Luid, function, guid, library
from probes.windows.facts import CacheFacts, CoreFacts


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (dxgi.AdapterDesc1, 312),
        (dxgi.VideoMemoryInfo, 32),
        (d3dkmt.OpenAdapter, 12),
        (d3dkmt.QueryInfo, 24),
        (d3dkmt.Address, 12),
        (d3dkmt.PerfData, 64),
        (pdh.Item, 24),
        (devices.PropertyKey, 20),
        (Guid, 16),
        (Luid, 8),
    ],
)
def test_structures_have_the_size_windows_expects(kind: type[ctypes.Structure], size: int) -> None:
    """A structure of another size would be read past its end, or refused."""
    assert ctypes.sizeof(kind) == size


def test_guids_are_laid_out_as_windows_does() -> None:
    """The first three parts are numbers of the machine's order, the rest bytes."""
    raw = bytes(guid("770aae78-f26f-4dba-a829-253c83d1b387"))
    assert raw.hex() == "78ae0a776ff2ba4da829253c83d1b387"


def test_adapter_description_becomes_a_record() -> None:
    """Names end at the first NUL, a LUID is eight digits each."""
    desc = dxgi.AdapterDesc1(vendor_id=0x10DE, device_id=1, dedicated_video=5, flags=2)
    desc.luid = Luid(0xD3F1, -1)
    for i, char in enumerate("GPU 1\0rubbish"):
        desc.description[i] = ord(char)
    facts = dxgi.facts_of(desc)
    assert (facts.description, facts.luid, facts.flags) == ("GPU 1", "ffffffff:0000d3f1", 2)


def test_counter_values_that_are_invalid_do_not_count() -> None:
    """Only valid items are used, and equal instances add up."""
    items = (pdh.Item * 4)(
        pdh.Item("a", 0, 1.5), pdh.Item("a", 1, 2.0), pdh.Item("b", 0xC0000BC6, 9.0),
        pdh.Item(None, 0, 9.0),
    )  # fmt: skip
    assert pdh.sums(items) == {"a": 3.5}


def test_counters_are_added_by_their_english_names() -> None:
    """Localised names would be missing on a German or French Windows."""
    assert all(path.startswith("\\GPU ") for path in pdh.COUNTERS)
    assert "PdhAddEnglishCounterW" in Path(pdh.__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("bits", "role"), [(0b10001, "discrete"), (0b100001, "integrated"), (0b11, None)]
)
def test_role_on_hybrid_machines(bits: int, role: str | None) -> None:
    """The adapter type's bits tell which of the two it is."""
    assert d3dkmt.hybrid_role(bits) == role


def core(efficiency: int, *groups: tuple[int, int]) -> bytes:
    masks = b"".join(struct.pack("<QH6x", mask, group) for mask, group in groups)
    body = struct.pack("<BB20xH", 1, efficiency, len(groups)) + masks
    return struct.pack("<II", 0, 8 + len(body)) + body


def test_cores_with_groups_and_classes() -> None:
    """Efficiency class and processors of each core, beyond the first group of 64 too."""
    data = core(1, (0b11, 0)) + core(0, (0b1, 1)) + struct.pack("<II", 3, 8)
    assert layout.parse_cores(data + bytes(64)) == (
        CoreFacts(efficiency=1, cpus=(0, 1)),
        CoreFacts(efficiency=0, cpus=(64,)),
    )


@pytest.mark.parametrize("cut", [0, 5, 20, 47])
def test_cut_core_tables_end_quietly(cut: int) -> None:
    """A damaged table gives what was whole."""
    assert layout.parse_cores(core(1, (1, 0))[:cut]) == ()


def test_core_table_with_a_size_of_zero_ends() -> None:
    """An entry that claims no size must not be read for ever."""
    assert layout.parse_cores(bytes(200)) == ()


def cache(level: int, size: int, kind: int, mask: int, count: int = 1) -> bytes:
    body = struct.pack("<BBHII18xH", level, 8, 64, size, kind, count) + struct.pack(
        "<QH6x", mask, 0
    )
    return struct.pack("<II", 2, 8 + len(body)) + body


def test_caches_that_hold_data() -> None:
    """Level, size and processors; instructions do not count, an older system gives no count."""
    data = cache(1, 32768, 1, 3) + cache(2, 1 << 20, 0, 3, count=0) + cache(3, 32 << 20, 0, 0xFF)
    assert layout.parse_caches(core(1, (1, 0)) + data) == (
        CacheFacts(level=2, n_bytes=1 << 20, cpus=(0, 1)),
        CacheFacts(level=3, n_bytes=32 << 20, cpus=tuple(range(8))),
    )


def node(number: int) -> bytes:
    body = struct.pack("<I18xH", number, 1) + struct.pack("<QH6x", 1, 0)
    return struct.pack("<II", 1, 8 + len(body)) + body


def test_memory_nodes_are_counted_once() -> None:
    """A node over several processor groups may be listed more than once."""
    assert layout.parse_nodes(node(0) + node(1) + node(1)) == 2


@pytest.mark.parametrize("cut", [0, 7, 11, 30])
def test_cut_cache_and_node_tables_end_quietly(cut: int) -> None:
    """A damaged table gives what was whole, and never reads past its end."""
    assert layout.parse_caches(cache(3, 1, 0, 1)[:cut]) == ()
    assert layout.parse_nodes(node(0)[:cut]) == 0
    assert layout.parse_nodes(node(0) + node(1)[:cut]) == 1


def module(size: int, speed: int, configured: int | None = None) -> bytes:
    body = bytearray(34 if configured is not None else 24)
    body[0], body[1] = 17, len(body)
    body[12:14] = size.to_bytes(2, "little")
    body[21:23] = speed.to_bytes(2, "little")
    if configured is not None:
        body[32:34] = configured.to_bytes(2, "little")
    return bytes(body) + b"DIMM 0\0SERIAL\0\0"


def test_memory_modules_of_the_firmware_table() -> None:
    """Empty slots count as slots; the configured speed wins over the possible one."""
    table = bytes([0, 4, 0, 0]) + b"x\0\0" + module(8192, 6400, 5600) + module(0, 0, 0)
    found = memory_modules(table + module(16384, 4800))
    assert found is not None
    assert (found.slots, found.populated, found.speed_mt_s) == (3, 2, 4800)


@pytest.mark.parametrize("table", [b"", b"\x11", bytes(50), b"\x11\xff\0\0", b"\x7f\x04\0\0\0\0"])
def test_damaged_firmware_tables_say_nothing(table: bytes) -> None:
    """Short, zero, oversized and ended tables name no module."""
    assert memory_modules(table) is None
    assert isinstance(structures(table), list)


def of_kind(kind: int) -> bytes:
    body = bytearray(module(8192, 5600))
    body[18] = kind
    return bytes(body)


@pytest.mark.parametrize(
    ("kinds", "name"), [((34, 34), "DDR5"), ((26, 34), None), ((2,), None), ((35,), "LPDDR5")]
)
def test_kind_of_memory_where_all_modules_agree(kinds: tuple[int, ...], name: str | None) -> None:
    """A kind that is unknown, or mixed, is not named."""
    found = memory_modules(b"".join(map(of_kind, kinds)))
    assert found is not None
    assert found.kind == name


def test_unknown_speeds_are_not_numbers() -> None:
    """Zero and 65535 stand for "unknown"."""
    found = memory_modules(module(8192, 0xFFFF, 0))
    assert found is not None
    assert found.speed_mt_s is None


EVENT = (
    "<Event xmlns='x'><System><Provider Name='Display'/><EventID Qualifiers='0'>4101</EventID>"
    "<TimeCreated SystemTime='2026-01-02T03:04:05.6Z'/></System></Event>"
)


def test_events_are_read_from_the_systems_answer() -> None:
    """Provider, number and time of each whole entry; damaged ones are left out."""
    broken = "<Event><System><EventID>1</EventID></System></Event>"
    found = events.parse(EVENT + broken + EVENT[:60])
    assert [(e.provider, e.event_id, e.time_utc) for e in found] == [
        ("Display", 4101, "2026-01-02T03:04:05.6Z")
    ]


def test_events_are_bounded() -> None:
    """A log full of resets gives the newest ones only."""
    assert len(events.parse(EVENT * 500)) == events.MAX_EVENTS


def test_device_list_is_split_at_nul() -> None:
    """The manager answers with texts that each end in NUL."""
    data = "PCI\\A\0PCI\\B\0\0".encode("utf-16-le")
    assert devices.multi_string(data) == ("PCI\\A", "PCI\\B")
    assert devices.multi_string(b"") == ()


def test_missing_libraries_and_functions_are_absences() -> None:
    """What a system lacks is a reason, not an exception."""
    assert library("no-such-library-anywhere.dll") is Absence.LIB_MISSING
    assert function(Absence.LIB_MISSING, "anything") is Absence.LIB_MISSING
    assert function(ctypes.pythonapi, "no_such_function_at_all") is Absence.SYMBOL_MISSING
