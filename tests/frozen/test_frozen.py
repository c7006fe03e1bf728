"""The bundle that people download: it is built once and started as they would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import tomllib
import urllib.request
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from PyInstaller.archive.readers import CArchiveReader

from tests.fakes.models import make_model

ROOT = Path(__file__).resolve().parents[2]
SUFFIX = ".exe" if os.name == "nt" else ""
WITHIN_S = 60.0
END_WITHIN_S = 1.0
TICK_S = 0.1

pytestmark = pytest.mark.frozen


class Bundle(NamedTuple):
    """The two programs, and a home folder of their own."""

    console: Path
    window: Path
    env: dict[str, str]

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run the console program to its end."""
        command = [self.console, *arguments]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=2 * WITHIN_S,
            env=self.env,
            stdin=subprocess.DEVNULL,
        )


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Return the bundle given by RIGTUNE_BUNDLE, or one built here, under an awkward path."""
    folder = tmp_path_factory.mktemp("bundle 中文")
    given = os.environ.get("RIGTUNE_BUNDLE")
    programs = Path(given) if given else build(folder)
    env = {**os.environ, "RIGTUNE_HOME": str(folder / "home"), "QT_QPA_PLATFORM": "offscreen"}
    env.pop("PYTHONPATH", None)
    return Bundle(programs / f"rigtune{SUFFIX}", programs / f"rigtune-gui{SUFFIX}", env)


def build(folder: Path) -> Path:
    """Build the bundle and return its folder."""
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    places = [f"--distpath={folder / 'dist'}", f"--workpath={folder / 'work'}"]
    built = subprocess.run(
        [*command, *places, str(ROOT / "packaging" / "rigtune.spec")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYINSTALLER_CONFIG_DIR": str(folder / "config")},
    )
    assert built.returncode == 0, built.stderr[-4000:]
    return folder / "dist" / "rigtune"


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
    with subprocess.Popen(
        [bundle.console, "--worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=bundle.env,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        alarm = threading.Timer(WITHIN_S, worker.kill)
        alarm.start()
        try:
            # A worker that is slow to load the engine says first that it is alive.
            messages = (json.loads(line) for line in worker.stdout)
            hello: dict[str, Any] = next((m for m in messages if m["type"] != "heartbeat"), {})
        finally:
            alarm.cancel()
        assert hello.get("type") == "hello", hello
        assert "CPU" in json.dumps(hello["engine"])
        mapped = {Path(region.path).name for region in psutil.Process(worker.pid).memory_maps()}
        assert not [name for name in mapped if "Qt6" in name or "pyside" in name.lower()]
        begin = time.perf_counter()
        worker.stdin.close()
        try:
            worker.wait(timeout=WITHIN_S)
        finally:
            worker.kill()
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


def test_doctor_starts_the_engine(bundle: Bundle) -> None:
    """The self-test finds a writable folder and an engine that starts."""
    done = bundle.run("doctor", "--json")
    checks = {check["id"]: check["status"] for check in json.loads(done.stdout)["checks"]}
    assert checks["engine"] == "ok", done.stdout


def test_tune_completes(bundle: Bundle, tmp_path: Path) -> None:
    """A search on a tiny model runs to its end, its file's name in another script."""
    model = make_model(tmp_path / "模型 tiny.gguf")
    done = bundle.run("tune", model, "--budget", "quick", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["status"] == "complete", answer


def test_serve_answers(bundle: Bundle, tmp_path: Path) -> None:
    """The local server starts from the bundle and names its model to a client with the token."""
    model = make_model(tmp_path / "tiny.gguf")
    with subprocess.Popen(
        [bundle.console, "serve", model, "--json"],
        env=bundle.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        alarm = threading.Timer(WITHIN_S, server.kill)
        alarm.start()
        try:
            said = json.loads(first_document(server))
            key = {"Authorization": f"Bearer {said['token']}"}
            request = urllib.request.Request(said["base_url"] + "/models", headers=key)
            with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
                models = json.load(answer)
        finally:
            alarm.cancel()
            server.kill()
    assert [entry["id"] for entry in models["data"]] == [said["model"]]


def first_document(process: subprocess.Popen[bytes]) -> bytes:
    """Return the JSON document that a running command prints first."""
    assert process.stdout is not None
    lines: list[bytes] = []
    for line in process.stdout:
        lines.append(line)
        if line.rstrip() == b"}":
            break
    return b"".join(lines) or b"{}"


def test_window_stays_open_and_starts_its_sibling(bundle: Bundle) -> None:
    """The window starts the console program as its worker, which ends when the window is killed."""
    with subprocess.Popen([bundle.window], env=bundle.env, stderr=subprocess.PIPE) as window:
        alarm = threading.Timer(WITHIN_S, window.kill)
        alarm.start()
        try:
            workers = workers_of(window)
        finally:
            alarm.cancel()
            window.kill()
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
