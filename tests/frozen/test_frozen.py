"""The bundle that people download: what is in it, and its two programs started as they would."""

import json
import subprocess
import time
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import pytest
from PyInstaller.archive.readers import CArchiveReader

from tests.fakes.bundle import ROOT, WITHIN_S, Bundle, killed_when_late
from tests.fakes.models import make_model

END_WITHIN_S = 10.0
TICK_S = 0.1

pytestmark = pytest.mark.frozen


def modules(program: Path) -> set[str]:
    """Return the names of the Python modules inside an executable."""
    return set(CArchiveReader(str(program)).open_embedded_archive("PYZ.pyz").toc)


def test_version_is_the_projects(bundle: Bundle) -> None:
    """The bundle says the version of the project it was built from."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    done = bundle.run("--version")
    assert done.returncode == 0, done.stderr
    assert version in done.stdout


def test_worker_says_hello_without_qt_and_ends_with_its_stdin(bundle: Bundle) -> None:
    """The worker finds the engine, maps no library of Qt's and ends when its parent does."""
    with bundle.worker() as (worker, hello):
        assert hello.get("type") == "hello", hello
        assert "CPU" in json.dumps(hello["engine"])
        mapped = {Path(region.path).name for region in psutil.Process(worker.pid).memory_maps()}
        assert not [name for name in mapped if "Qt6" in name or "pyside" in name.lower()]
        assert worker.stdin is not None
        begin = time.perf_counter()
        worker.stdin.close()
        worker.wait(timeout=WITHIN_S)
        assert time.perf_counter() - begin <= END_WITHIN_S


def test_each_program_holds_its_half(bundle: Bundle) -> None:
    """No Qt in the console program, no engine in the window's, nothing of the tests in either."""
    console, window = modules(bundle.console), modules(bundle.window)
    assert {"app.worker.native", "llama_cpp.server.app", "probes.registry"} <= console
    assert {"views.main_window", "PySide6", "probes.registry", "app.session"} <= window
    assert not console & {"PySide6", "shiboken6", "pyqtgraph", "views"}
    assert not window & {"llama_cpp", "app.worker.native", "app.worker.serve", "app.cli"}
    assert not (console | window) & {"pytest", "hypothesis", "tests", "gguf", "app.power.helper"}


def test_folder_holds_engine_and_licences_and_no_driver(bundle: Bundle) -> None:
    """Every module of the engine's wheel is there, and so are the licences; drivers are not."""
    files = {path.name for path in bundle.console.parent.rglob("*")}
    wheel = metadata.files("llama_cpp_python") or []
    backends = {file.name for file in wheel if file.name.startswith(("libggml-", "ggml-"))}
    assert {name for name in backends if name.endswith((".so", ".dll"))} <= files
    assert {"NOTICES.txt", "sbom.json", "en.toml", "zh.toml", "rigtune.svg"} <= files
    drivers = ("libvulkan", "libcuda", "libGLX", "libEGL", "libstdc++.so", "vulkan-1")
    assert not [name for name in files if name.startswith(drivers)]


def test_every_file_of_the_list_is_there(bundle: Bundle) -> None:
    """The list by which the program notices a missing file names real ones, the engine's too."""
    inside = bundle.console.parent / "_internal"
    listed = (inside / "files.txt").read_text("utf-8").splitlines()
    assert [name for name in listed if not (inside / name).exists()] == []
    assert any("llama_cpp/lib/" in name and "ggml" in name for name in listed)
    assert any(name.startswith("PySide6/") for name in listed)


def test_doctor_is_content_without_the_demo_model(bundle: Bundle) -> None:
    """A download has no demo model: nothing to mend, and no set-up script is named."""
    done = bundle.run("doctor", "--json")
    document = json.loads(done.stdout)
    checks = {check["id"]: check for check in document["checks"]}
    assert checks["engine"]["status"] == "ok", done.stdout
    assert checks["model"]["status"] in {"warning", "ok"}, done.stdout
    assert "bootstrap.py" not in done.stdout
    # what this machine lacks for itself (a driver, say) is not the bundle's fault
    assert done.returncode == (0 if document["ok"] else 3)
    assert "installation" not in checks


def test_tune_completes(bundle: Bundle, tmp_path: Path) -> None:
    """A search on a tiny model runs to its end, its file's name in another script."""
    model = make_model(tmp_path / "模型 tiny.gguf")
    done = bundle.run("tune", model, "--budget", "quick", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["status"] == "complete", answer


def test_window_stays_open_and_starts_its_sibling(bundle: Bundle) -> None:
    """The window starts the console program as its worker, which ends when the window is killed."""
    with subprocess.Popen([bundle.window], env=bundle.env, stderr=subprocess.PIPE) as window:
        with killed_when_late(window):
            workers = workers_of(window)
        assert window.stderr is not None
        assert workers, window.stderr.read().decode()
        assert psutil.wait_procs(workers, timeout=WITHIN_S)[1] == []


def workers_of(window: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Wait until the window has a worker or is gone; return its workers."""
    while True:
        try:
            window.wait(TICK_S)
        except subprocess.TimeoutExpired:
            children = psutil.Process(window.pid).children(recursive=True)
            if workers := [child for child in children if "--worker" in command_of(child)]:
                return workers
        else:
            return []


def command_of(process: psutil.Process) -> list[str]:
    """Return a process's command line; none when it has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
