"""The check before Qt is loaded."""

import sys
from pathlib import Path

import pytest

from views.preflight import COLUMNS, damaged, missing_libraries, sentence, tell

on_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="a message box of Windows waits for a click"
)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Qt brings its own elsewhere")
def test_missing_library_is_named_with_its_package() -> None:
    """The sentence must name the library and the exact command that brings it."""

    def load(name: str) -> object:
        if name == "libxcb-cursor.so.0":
            raise OSError(name)
        return object()

    missing = missing_libraries(needs_x11=True, load=load)
    assert missing == ("libxcb-cursor.so.0",)
    assert "sudo apt install libxcb-cursor0" in sentence(missing)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Qt brings its own elsewhere")
def test_x11_is_not_asked_for_without_need() -> None:
    """Wayland and offscreen do not need X11's libraries."""

    def load(name: str) -> object:
        if "xcb" in name or "x11" in name:
            raise OSError(name)
        return object()

    assert missing_libraries(needs_x11=False, load=load) == ()


def make_program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@on_linux
def test_started_from_an_icon_the_desktop_shows_the_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal the first messenger that works gets the sentence, as one argument."""
    seen = tmp_path / "seen"
    make_program(tmp_path, "kdialog", "exit 254")
    make_program(
        tmp_path, "xmessage", f'for last; do :; done; printf %s "$last" > "{seen}"; exit 1'
    )
    make_program(tmp_path, "notify-send", f'echo again >> "{seen}"')
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DISPLAY", ":0")
    text = 'It lacks "libEGL.so.1" & <b>more</b>. ' + "And a long remedy follows it here. " * 3
    tell(text.strip())
    shown = seen.read_text(encoding="utf-8")
    assert " ".join(shown.split()) == text.strip()
    assert max(map(len, shown.splitlines())) <= COLUMNS
    assert text.strip() in capsys.readouterr().err


@on_linux
def test_without_any_messenger_the_sentence_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bare window manager has none of them: nothing fails."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DISPLAY", ":0")
    tell("sentence")
    assert capsys.readouterr().err == "sentence\n"


def test_a_damaged_installation_names_what_is_gone() -> None:
    """Three names are enough; the user learns what may have happened and what to do."""
    text = damaged(("a.so", "b.so", "c.so", "d.so"))
    assert "a.so, b.so, c.so, …" in text
    assert "Install RigTune again" in text
    assert "…" not in damaged(("a.so",))
