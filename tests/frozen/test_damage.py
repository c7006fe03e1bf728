"""A bundle that something happened to: files taken away, a folder without rights, an upgrade."""

import json
import os
import stat
from pathlib import Path

import pytest

from tests.fakes.bundle import SUFFIX, Bundle, copied

pytestmark = pytest.mark.frozen


@pytest.fixture
def copy(bundle: Bundle, tmp_path: Path) -> Bundle:
    """Return a copy of the bundle to damage, with a home of its own."""
    made = copied(bundle, tmp_path / "Program Files & 中文")
    return made._replace(env=bundle.env | {"RIGTUNE_HOME": str(tmp_path / "home")})


def engine_library(bundle: Bundle) -> Path:
    """Return the file of llama.cpp itself in a bundle."""
    folder = bundle.console.parent / "_internal" / "llama_cpp" / "lib"
    return next(p for p in folder.iterdir() if p.name in {"libllama.so", "llama.dll"})


def test_an_engine_that_was_taken_away_is_named(copy: Bundle) -> None:
    """A quarantined library ends in a sentence that names it, in every program."""
    lost = engine_library(copy)
    lost.unlink()
    done = copy.run("doctor", "--json")
    assert done.returncode == 3
    checks = {check["id"]: check for check in json.loads(done.stdout)["checks"]}
    assert lost.name in checks["installation"]["text"]
    tune = copy.run("tune", "nothing.gguf", "--json")
    assert "error" in json.loads(tune.stdout)
    shown = copy.run("probe")  # the rest of the machine is shown all the same
    assert shown.returncode == 0
    assert lost.name in shown.stdout.replace("\n", "")
    assert "Traceback" not in shown.stdout + shown.stderr


@pytest.mark.skipif(os.name == "nt", reason="a window would show a box and wait")
def test_a_window_part_that_was_taken_away_is_named(copy: Bundle) -> None:
    """The window says it before Qt would end the program without a word."""
    (lost,) = (copy.console.parent / "_internal" / "PySide6").rglob("libqoffscreen.so")
    lost.unlink()
    # without a display it opens no box that waits for somebody
    window = Bundle(copy.window, copy.window, copy.env).run(DISPLAY="", WAYLAND_DISPLAY="")
    assert window.returncode == 3
    assert lost.name in window.stderr
    assert "Traceback" not in window.stderr


@pytest.mark.skipif(os.name == "nt", reason="folders of Windows have no such bits")
def test_a_program_folder_without_write_permission_works(copy: Bundle) -> None:
    """A folder that an administrator owns is only read."""
    folders = [p for p in (copy.console.parent, *copy.console.parent.rglob("*")) if p.is_dir()]
    for folder in folders:
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert copy.run("--version").returncode == 0
        assert copy.run("doctor", "--json").stdout
        with copy.worker() as (_, hello):
            assert hello["type"] == "hello"
    finally:
        for folder in folders:
            folder.chmod(stat.S_IRWXU)


def test_after_an_upgrade_the_earlier_engine_can_be_chosen(copy: Bundle) -> None:
    """An upgrade whose engine does not start: the error names the way back, and it leads there."""
    folder = copy.console.parent
    copied(copy, folder.with_name("previous")).console.parent.rename(folder / "previous")
    engine_library(copy).unlink()
    (folder / "_internal" / "files.txt").unlink()
    broken = copy.run("engine", "--json")
    assert broken.returncode == 3
    current, previous = json.loads(broken.stdout)["engines"]
    assert (current["in_use"], previous["in_use"]) == (True, False)
    assert current["error"]
    assert previous["build"]
    assert "--use previous" in " ".join(copy.run("probe").stdout.split())
    assert copy.run("engine", "--use", "previous").returncode == 0
    checks = json.loads(copy.run("doctor", "--json").stdout)["checks"]
    assert {c["id"]: c["status"] for c in checks}["engine"] == "ok"
    assert (folder / "previous" / f"rigtune{SUFFIX}").is_file()
