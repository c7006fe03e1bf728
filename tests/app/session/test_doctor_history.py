"""Before and after: a self-test compares itself with the last one."""

from pathlib import Path

import pytest

from app.session.doctor_history import FILE_NAME, compared, keep_run, last_run, new_run


def test_speeds_are_kept_for_the_next_time(tmp_path: Path) -> None:
    """What was written is read; the newest run replaces the one before."""
    assert last_run(tmp_path) is None
    for speed in (10.0, 20.0):
        keep_run(new_run("m", "ac power", {"CUDA0": speed}), tmp_path)
    found = last_run(tmp_path)
    assert found is not None
    assert found.decode_tok_s == {"CUDA0": 20.0}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"time_utc": 3}', "\x00\xff"])
def test_a_damaged_file_is_no_last_run(tmp_path: Path, text: str) -> None:
    """A truncated file costs the comparison, not the self-test."""
    (tmp_path / FILE_NAME).write_bytes(text.encode("latin-1"))
    assert last_run(tmp_path) is None


def test_the_change_is_said_with_its_conditions() -> None:
    """Plugged in since: the speed before, when and how, and the change in per cent."""
    before = new_run("m", "battery power, saver mode", {"CUDA0": 20.0, "the CPU": 0.0})
    told = compared(before, "m", "CUDA0", 50.0)
    assert "20.0 tok/s" in told.replace("\u00a0", " ")
    assert "battery power, saver mode" in told
    assert "+150 %" in told


def test_other_models_and_devices_are_not_compared() -> None:
    """Nothing is said where nothing can be compared."""
    before = new_run("m", "ac power", {"CUDA0": 20.0, "the CPU": 0.0})
    for model, where in (("other", "CUDA0"), ("m", "Vulkan0"), ("m", "the CPU")):
        assert compared(before, model, where, 50.0) == ""
    assert compared(None, "m", "CUDA0", 50.0) == ""
