"""What the operating system says, and what it refuses to say."""

import psutil
import pytest

from probes.system import LiveSystem


def _refuse(*_args: object, **_options: object) -> None:
    raise OSError(1, "Invalid function")


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("cpu_count", ["cores_physical"]),
        ("virtual_memory", ["ram_bytes", "ram_available_bytes"]),
        ("swap_memory", ["swap_bytes", "swap_used_bytes"]),
        ("cpu_percent", ["cpu_busy_pct"]),
        ("sensors_battery", ["battery_pct", "plugged"]),
    ],
)
def test_refused_reading_is_missing_and_the_others_are_there(
    name: str, fields: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call that the system refuses, as in a chroot or a broken Windows, must cost no more."""
    monkeypatch.setattr(psutil, name, _refuse, raising=False)
    facts = LiveSystem().facts()
    assert [getattr(facts, field) for field in fields] == [None] * len(fields)
    assert facts.os
    assert facts.ram_bytes or "ram_bytes" in fields
