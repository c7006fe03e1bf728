"""The bundle that people download: it is built once and started as they would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "rigtune.exe" if os.name == "nt" else "rigtune"
HELLO_WITHIN_S = 60.0
END_WITHIN_S = 1.0

pytestmark = pytest.mark.frozen


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program of a bundle given by RIGTUNE_BUNDLE, or of one built here."""
    if given := os.environ.get("RIGTUNE_BUNDLE"):
        return Path(given) / PROGRAM
    folder = tmp_path_factory.mktemp("bundle")
    build = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    places = [f"--distpath={folder / 'dist'}", f"--workpath={folder / 'work'}"]
    built = subprocess.run(
        [*build, *places, str(ROOT / "packaging" / "rigtune.spec")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYINSTALLER_CONFIG_DIR": str(folder / "config")},
    )
    assert built.returncode == 0, built.stderr[-4000:]
    return folder / "dist" / "rigtune" / PROGRAM


def test_version_is_the_projects(program: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    done = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert version in done.stdout


def test_worker_says_hello_and_ends_with_its_stdin(program: Path) -> None:
    with subprocess.Popen(
        [program, "--worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        alarm = threading.Timer(HELLO_WITHIN_S, worker.kill)
        alarm.start()
        try:
            hello = json.loads(worker.stdout.readline() or b"{}")
        finally:
            alarm.cancel()
        assert hello.get("type") == "hello", hello
        # The engine and its CPU module were found inside the bundle.
        assert "CPU" in json.dumps(hello["engine"])
        begin = time.perf_counter()
        worker.stdin.close()
        try:
            worker.wait(timeout=HELLO_WITHIN_S)
        finally:
            worker.kill()
        assert time.perf_counter() - begin <= END_WITHIN_S


def test_bundle_holds_the_engine_and_no_qt(program: Path) -> None:
    files = {path.relative_to(program.parent).as_posix() for path in program.parent.rglob("*")}
    assert not [name for name in files if "PySide6" in name or "Qt6" in name]
    engine = [name for name in files if "llama_cpp/lib/" in name]
    for part in ("llama", "ggml-base", "ggml-cpu", "ggml-rpc"):
        assert any(part in name for name in engine), f"{part} is not among {engine}"
