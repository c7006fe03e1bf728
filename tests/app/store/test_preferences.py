"""Preferences: kept, upgraded, and never a reason not to start."""

import json
from pathlib import Path

import pytest

from app import runtime
from app.domain.errors import EnvironmentProblem
from app.store.preferences import (
    FILE_NAME,
    OLD_FILE_NAME,
    Preferences,
    load_preferences,
    save_preferences,
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test its own folders."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))


def write(content: str) -> None:
    """Put ``content`` where the preferences lie."""
    (runtime.data_dir() / FILE_NAME).write_text(content, encoding="utf-8")


def test_what_was_saved_comes_back() -> None:
    """Every option must survive, non-ASCII folders included."""
    mine = Preferences(
        level="expert", theme="dark", contrast="high", language="zh", memory_unit="decimal",
        temperature_unit="fahrenheit", interval_s=2.0, headroom_mib=640,
        model_folders=("/modelle/ä b", "/模型"), is_introduced=True,
    )  # fmt: skip
    save_preferences(mine)
    assert load_preferences() == (mine, "")


def test_no_file_means_defaults() -> None:
    """A first start must have defaults and no notice."""
    assert load_preferences() == (Preferences(), "")


@pytest.mark.parametrize("content", ["{", "[]", '{"schema_version": 1, "theme": "plaid"}', ""])
def test_broken_file_is_put_aside_and_named(content: str) -> None:
    """A broken file must be kept under another name, not replaced silently."""
    write(content)
    found, aside = load_preferences()
    assert found == Preferences()
    assert Path(aside).read_text("utf-8") == content
    assert not (runtime.data_dir() / FILE_NAME).exists()


def test_oldest_file_is_upgraded() -> None:
    """The look chosen before there were preferences must be kept."""
    old = runtime.data_dir() / OLD_FILE_NAME
    old.write_text('{"scheme": "dark", "geometry": "AAAA"}', encoding="utf-8")
    assert load_preferences()[0] == Preferences(theme="dark", is_introduced=True)
    old.write_text("{", encoding="utf-8")
    assert load_preferences() == (Preferences(), "")


def test_newer_file_is_read_as_far_as_understood() -> None:
    """A newer program's file must not be lost on an older one."""
    write(json.dumps({"schema_version": 9, "language": "zh", "holograms": True}))
    assert load_preferences() == (Preferences(language="zh"), "")


def test_impossible_numbers_are_brought_into_range() -> None:
    """A pace of 0 would read without end; a negative headroom means nothing."""
    write('{"schema_version": 1, "interval_s": 0, "headroom_mib": -5}')
    assert load_preferences()[0] == Preferences(interval_s=0.5)


def test_folder_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only home must end in a sentence."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "file" / "home"))
    assert load_preferences() == (Preferences(), "")
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        save_preferences(Preferences())
