"""What a Vulkan build takes from the machine: never more than it may, and never old headers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).resolve().parents[2] / "packaging"


@pytest.fixture
def vulkan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Load the script on a Linux machine with an empty cache that lacks everything."""
    names = ("boot_vulkan", "boot_host")
    monkeypatch.syspath_prepend(str(FOLDER))
    loaded = importlib.import_module("boot_vulkan")
    monkeypatch.setattr(loaded.sys, "platform", "linux")
    monkeypatch.setattr(loaded, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(loaded, "SYSTEM_HEADERS", tmp_path / "include")
    monkeypatch.setattr(loaded, "may_install", lambda: False)
    monkeypatch.setattr(loaded, "is_missing", lambda _need: True)
    monkeypatch.setattr(loaded, "is_debian", lambda: False)
    yield loaded
    for name in names:
        sys.modules.pop(name, None)


def write_headers(folder: Path, number: int, *, cpp: bool = True) -> Path:
    (folder / "vulkan").mkdir(parents=True)
    text = f"#define VK_HEADER_VERSION_COMPLETE 1\n#define VK_HEADER_VERSION {number}\n"
    (folder / "vulkan" / "vulkan_core.h").write_text(text)
    if cpp:
        (folder / "vulkan" / "vulkan.hpp").touch()
    return folder


class TestPossible:
    def test_not_without_tools_or_the_right_to_install_them(self, vulkan: Any) -> None:
        assert not vulkan.is_possible()

    def test_root_may_bring_everything(self, vulkan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vulkan, "may_install", lambda: True)
        assert vulkan.is_possible()

    def test_everybody_may_use_what_is_there(
        self, vulkan: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vulkan, "is_missing", lambda _need: False)
        assert not vulkan.is_possible()
        write_headers(vulkan.SYSTEM_HEADERS, 275)
        assert vulkan.is_possible()

    def test_on_debian_headers_can_be_fetched_without_being_root(
        self, vulkan: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vulkan, "is_missing", lambda _need: False)
        monkeypatch.setattr(vulkan, "is_debian", lambda: True)
        assert vulkan.is_possible()

    def test_never_on_windows(self, vulkan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vulkan, "may_install", lambda: True)
        monkeypatch.setattr(vulkan.sys, "platform", "win32")
        assert not vulkan.is_possible()


class TestHeaders:
    def test_old_ones_are_passed_over_for_fetched_ones(self, vulkan: Any) -> None:
        write_headers(vulkan.SYSTEM_HEADERS, 239)
        assert vulkan.find_headers() is None
        fetched = write_headers(vulkan.private_prefix() / "usr" / "include", 309)
        assert vulkan.find_headers() == fetched

    def test_the_systems_own_are_taken_when_new_enough(self, vulkan: Any) -> None:
        own = write_headers(vulkan.SYSTEM_HEADERS, vulkan.OLDEST_HEADERS)
        write_headers(vulkan.private_prefix() / "usr" / "include", 309)
        assert vulkan.find_headers() == own

    def test_half_a_set_counts_as_none(self, vulkan: Any) -> None:
        write_headers(vulkan.SYSTEM_HEADERS, 309, cpp=False)
        assert vulkan.find_headers() is None


class TestMirror:
    LISTING = (
        "http://a.example/security/|bookworm-security|main|bookworm-security\n"
        "http://b.example/debian/|bookworm|contrib|bookworm\n"
        "http://c.example/debian/|bookworm|main|bookworm\n"
    )

    def test_it_is_the_one_that_serves_the_systems_release(self, vulkan: Any) -> None:
        assert vulkan.find_mirror(self.LISTING, "bookworm") == "http://c.example/debian/"

    def test_a_source_that_says_stable_is_known_by_its_code_name(self, vulkan: Any) -> None:
        listing = "http://d.example/debian/|stable|main|bookworm\n"
        assert vulkan.find_mirror(listing, "bookworm") == "http://d.example/debian/"

    @pytest.mark.parametrize("listing", ["", "http://e.example/|nodistro|main|x\n", "odd\n"])
    def test_none_is_none(self, vulkan: Any, listing: str) -> None:
        assert vulkan.find_mirror(listing, "bookworm") is None
        assert vulkan.find_mirror(listing, "") is None


def test_apt_leaves_the_systems_sources_and_lists_alone(vulkan: Any, tmp_path: Path) -> None:
    """Every folder that apt writes to or reads sources from is a private one."""
    options = dict(p.split("=", 1) for p in vulkan.private_apt(tmp_path) if "=" in p)
    for name in ("Dir::State", "Dir::Cache", "Dir::Etc::sourcelist"):
        assert options[name].startswith(str(tmp_path))
    assert options["Dir::Etc::sourceparts"] == "/dev/null"


def test_a_failed_download_leaves_nothing(
    vulkan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start finds the cache as it was."""
    monkeypatch.setattr(vulkan, "find_mirror", lambda *_: "http://f.example/debian/")

    def fail(*_: object) -> None:
        raise vulkan.Problem("no network")

    monkeypatch.setattr(vulkan, "work", fail)
    with pytest.raises(vulkan.Problem, match="no network"):
        vulkan.fetch_headers()
    assert list((tmp_path / "cache").iterdir()) == []
