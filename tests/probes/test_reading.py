"""No raw reading, however wrong, becomes a wrong number."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.domain.machine import GpuInfo, GpuProcess, PowerState
from probes.reading import (
    INFO_RANGES,
    SAMPLE_RANGES,
    Absence,
    gpu_info,
    gpu_sample,
    scaled,
    whole_number,
)

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=1 << 63, max_value=1 << 70),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(["[N/A]", "12", b"\0", [], {}, object()]),
    st.sampled_from(list(Absence)),
    st.dictionaries(st.sampled_from(["sw_thermal", "sw_power_cap"]), st.floats(allow_nan=True)),
)
SAMPLE_FIELDS = (*SAMPLE_RANGES, "throttle", "processes", "limited_pct", "adapter", "power_mizer")
WHOLE_NUMBERS = ("_bytes", "pcie_gen", "pcie_width", "memory_errors")
INFO_FIELDS = (
    *(*INFO_RANGES, "uuid", "name", "driver"),
    *("unified_memory", "drives_display", "persistence", "ecc"),
)
SIZES = st.one_of(st.none(), st.integers(1, 1 << 40))


@given(st.dictionaries(st.sampled_from(SAMPLE_FIELDS), ANYTHING), SIZES, SIZES)
def test_any_sample_is_possible_or_absent_with_a_reason(
    values: dict[str, Any], vram: int | None, shared: int | None
) -> None:
    """Every field is in its range, within its whole, finite; or None with one reason."""
    sample = gpu_sample(
        "GPU-1", 1, PowerState.AWAKE, values, vram_total_bytes=vram, shared_total_bytes=shared
    )
    for field, (low, high) in SAMPLE_RANGES.items():
        value = getattr(sample, field)
        assert (value is None) == (field in sample.missing)
        if value is not None:
            assert math.isfinite(value)
            assert low <= value <= high
            assert isinstance(value, int) == field.endswith(WHOLE_NUMBERS)
    shares = sample.limited_pct
    assert (shares is None) == ("limited_pct" in sample.missing)
    assert all(0 <= share <= 100 for share in (shares or {}).values())
    for field, whole in (("vram_used_bytes", vram), ("shared_used_bytes", shared)):
        value = getattr(sample, field)
        assert value is None or whole is None or value <= whole


@given(st.dictionaries(st.sampled_from(INFO_FIELDS), ANYTHING))
def test_any_info_is_possible_or_absent_with_a_reason(values: dict[str, Any]) -> None:
    """The same for the constant facts; a limit range is never the wrong way round."""
    info = gpu_info(GpuInfo(probe="x"), values)
    for field, (low, high) in INFO_RANGES.items():
        value = getattr(info, field)
        assert (value is None) == (field in info.missing)
        assert value is None or low <= value <= high
    for field in ("uuid", "name", "driver"):
        value = getattr(info, field)
        assert value is None or (value.strip() and "N/A" not in value)
        assert (value is None) == (field in info.missing)
    if info.power_limit_min_w is not None and info.power_limit_max_w is not None:
        assert info.power_limit_min_w <= info.power_limit_max_w


def test_memory_of_a_process_above_the_card_is_unknown() -> None:
    """A process never holds 17179869184 GiB; the process itself stays in the list."""
    absurd = (GpuProcess(pid=79, vram_bytes=17179869184 << 30), GpuProcess(pid=80, vram_bytes=5))
    sample = gpu_sample("k", 1, PowerState.AWAKE, {"processes": absurd}, vram_total_bytes=16 << 30)
    assert sample.processes is not None
    assert [p.vram_bytes for p in sample.processes] == [None, 5]


def test_scaling_passes_absence_on() -> None:
    """A unit is changed for numbers only."""
    assert scaled(59340, 1e-3) == 59.34
    assert scaled(Absence.LOST, 1e-3) is Absence.LOST
    assert scaled(10**400, 1e-3) is Absence.IMPLAUSIBLE


def test_text_that_is_no_number_is_absent() -> None:
    """Texts such as ``[N/A]`` are no numbers; hexadecimal is read when asked for."""
    assert whole_number("[N/A]") is Absence.NO_DATA
    assert whole_number(" 42\n") == 42
    assert whole_number("0x2fa000000", 0) == 0x2FA000000


def test_nothing_is_set_within_a_range_that_cannot_be() -> None:
    """Limits the wrong way round are no limits, and no power limit is offered."""
    known = GpuInfo(probe="x", pci_id="0000:01:00.0")
    limits = {"power_limit_min_w": 350, "power_limit_max_w": 300, "power_limit_settable": True}
    info = gpu_info(known, limits)
    assert (info.power_limit_max_w, info.power_limit_settable) == (None, None)
    assert info.missing["power_limit_settable"] == "implausible"
    right = gpu_info(known, limits | {"power_limit_min_w": 100})
    assert (right.power_limit_min_w, right.power_limit_settable) == (100, True)
