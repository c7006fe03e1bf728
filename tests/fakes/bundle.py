"""The bundle that people download, as tests build it and run its programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
SUFFIX = ".exe" if os.name == "nt" else ""
WITHIN_S = 60.0
BEFORE_HELLO = {"heartbeat", "log"}


class Bundle(NamedTuple):
    """The two programs, and a home folder of their own."""

    console: Path
    window: Path
    env: dict[str, str]

    def run(self, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the console program to its end, with more variables in its environment."""
        command = [self.console, *arguments]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=2 * WITHIN_S,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
        )

    @contextmanager
    def worker(self, **env: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
        """Start a worker, with more variables in its environment, and give what it says first."""
        with subprocess.Popen(
            [self.console, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.env | env,
        ) as process:
            assert process.stdout is not None
            alarm = threading.Timer(WITHIN_S, process.kill)
            alarm.start()
            try:
                # Before its greeting a worker may say that it is alive, and what failed to load.
                messages: Iterator[dict[str, Any]] = map(msgspec.json.decode, process.stdout)
                yield process, next((m for m in messages if m["type"] not in BEFORE_HELLO), {})
            finally:
                alarm.cancel()
                process.kill()


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


def copied(bundle: Bundle, folder: Path) -> Bundle:
    """Return a copy of the bundle in ``folder``; files share their room where that is possible."""
    source = bundle.console.parent
    try:
        shutil.copytree(source, folder, symlinks=True, copy_function=os.link)
    except (OSError, shutil.Error):  # another disk, or a system without links
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder, symlinks=True)
    return Bundle(folder / bundle.console.name, folder / bundle.window.name, bundle.env)


@contextmanager
def killed_when_late(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill a process that is not done in time, and at the end."""
    alarm = threading.Timer(WITHIN_S, process.kill)
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()
        process.kill()
