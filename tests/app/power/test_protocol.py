"""The helper's protocol: strict, small, and the rule of what may be set."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.power.protocol import (
    MAX_LINE_BYTES,
    Hello,
    KeepAlive,
    Message,
    NotUnderstood,
    Open,
    PutBack,
    Quit,
    Range,
    Restore,
    SetClocks,
    SetPower,
    decode_reply,
    decode_request,
    encode,
    power_range,
    within,
)

REQUESTS = [
    Open(pci_id="0000:01:00.0"),
    SetPower(watts=150.5),
    SetClocks(high_mhz=1500.0),
    KeepAlive(),
    Restore(knob="clocks"),
    Quit(),
]
watts = st.none() | st.floats(-10.0, 1000.0) | st.just(0.0)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: type(r).__name__)
def test_requests_survive_the_wire(request_: Message) -> None:
    """Every request comes out as it went in."""
    assert decode_request(encode(request_)) == request_


def test_replies_survive_the_wire() -> None:
    """A reply with what was put back comes out as it went in."""
    back = PutBack(pci_id="0000:01:00.0", knob="power_limit", result="restored", value=203.0)
    hello = Hello(pid=7, pending=(back,))
    assert decode_reply(encode(hello)) == hello


@given(st.binary(max_size=300))
@example(b"x" * (MAX_LINE_BYTES + 1))
@example(b"[" * 4000)
def test_noise_is_not_understood(line: bytes) -> None:
    """Random bytes are refused with the one error, never another exception."""
    with pytest.raises(NotUnderstood):
        decode_request(line)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # on a loaded machine
@given(
    st.dictionaries(
        st.sampled_from(["type", "watts", "pci_id", "lease_s", "high_mhz", "knob", "v", "path"]),
        st.sampled_from(["open", "set_power", "set_clocks", "restore", "quit"]) | json_values,
    )
)
def test_almost_requests_are_exact_or_refused(document: dict[str, object]) -> None:
    """A request has exactly its fields with exactly their types, or it is none."""
    line = json.dumps(document).encode()
    try:
        request = decode_request(line)
    except NotUnderstood:
        return
    names = {"type", *request.__struct_fields__}
    assert set(document) <= names
    if isinstance(request, SetPower):
        assert isinstance(document["watts"], int | float)
        assert not isinstance(document["watts"], bool)


@given(low=watts, high=watts, default=watts, now=watts)
def test_range_is_never_unsafe(
    low: float | None, high: float | None, default: float | None, now: float | None
) -> None:
    """Never 0, never below half the default or the driver's minimum, never above what was found."""
    found = power_range(low, high, default, now)
    if isinstance(found, str):
        return
    assert now is not None
    assert 1.0 <= found.low < found.high <= now
    assert found.low >= (low or 0.0)
    assert found.low >= 0.5 * (default if default and default >= 1.0 else now)
    if high:
        assert found.high <= high


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ((100.0, 385.0, 350.0, 350.0), (175.0, 350.0)),  # a desktop card
        ((0.0, 282.0, 304.0, 304.0), (152.0, 282.0)),  # RDNA4 reports a minimum of 0
        ((285.0, 330.0, 303.0, 303.0), (285.0, 303.0)),  # AMD since Linux 6.7: 10 % below default
        ((95.0, 95.0, 95.0, 95.0), "no_range"),  # RX 7600S
        ((None, None, None, None), "limit_not_readable"),  # processors with a GPU
        ((None, 190.0, 190.0, 0.0), "limit_switched_off"),  # Intel: 0 means no limit
        ((None, None, None, 190.0), (95.0, 190.0)),  # i915 without a rated maximum
        ((150.0, 180.0, 180.0, 180.0), (150.0, 180.0)),  # 5060 Ti (B20)
        ((5.0, 95.0, 35.0, 35.0), (17.5, 35.0)),  # a laptop: never above what was found
        ((100.0, 385.0, 350.0, 250.0), (175.0, 250.0)),  # the user's own 250 W is the ceiling
    ],
)
def test_odd_ranges(figures: tuple[float | None, ...], expected: tuple[float, float] | str) -> None:
    """Published figures of real cards give the range they should."""
    found = power_range(*figures)
    assert (found if isinstance(found, str) else (found.low, found.high)) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 149.9, 180.1])
def test_nothing_strange_is_within(value: float) -> None:
    """Only finite numbers inside the range are."""
    assert not within(value, Range(low=150.0, high=180.0, now=180.0))
