"""The check before Qt is loaded."""

import sys

import pytest

from views.preflight import missing_libraries, sentence


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
