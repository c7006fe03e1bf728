"""What the set-up needs from the machine: system packages, quiet commands, a cache folder."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WINDOWS = os.name == "nt"
SECONDS_BETWEEN_SIGNS_OF_LIFE = 5.0
SECONDS_TO_END = 2.0


class Problem(Exception):
    """Something the user can act on; printed as a sentence, without a traceback."""


class Need(NamedTuple):
    """A part of the operating system: its Debian package and how its presence shows."""

    package: str
    library: str = ""
    tool: str = ""
    file: str = ""


RUN_NEEDS = (Need("libgomp1", library="libgomp.so.1"),)
BUILD_NEEDS = (Need("g++", tool="g++"),)
WINDOW_NEEDS = (
    Need("libegl1", library="libEGL.so.1"),
    Need("libgl1", library="libGL.so.1"),
    Need("libglib2.0-0", library="libgthread-2.0.so.0"),
    Need("libdbus-1-3", library="libdbus-1.so.3"),
    Need("libfontconfig1", library="libfontconfig.so.1"),
    Need("libxkbcommon0", library="libxkbcommon.so.0"),
    Need("libxkbcommon-x11-0", library="libxkbcommon-x11.so.0"),
    Need("libx11-xcb1", library="libX11-xcb.so.1"),
    Need("libxcb-cursor0", library="libxcb-cursor.so.0"),
    Need("libxcb-icccm4", library="libxcb-icccm.so.4"),
    Need("libxcb-image0", library="libxcb-image.so.0"),
    Need("libxcb-keysyms1", library="libxcb-keysyms.so.1"),
    Need("libxcb-randr0", library="libxcb-randr.so.0"),
    Need("libxcb-render-util0", library="libxcb-render-util.so.0"),
    Need("libxcb-shape0", library="libxcb-shape.so.0"),
    Need("libxcb-sync1", library="libxcb-sync.so.1"),
    Need("libxcb-xfixes0", library="libxcb-xfixes.so.0"),
    Need("libxcb-xinerama0", library="libxcb-xinerama.so.0"),
    Need("libxcb-xkb1", library="libxcb-xkb.so.1"),
    Need("fonts-dejavu-core", file="/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"),
)
LIBPYTHON = f"libpython{sys.version_info[0]}.{sys.version_info[1]}"
TEST_NEEDS = (
    Need("xvfb", tool="Xvfb"),
    Need("binutils", tool="objdump"),  # PyInstaller reads libraries with it
    Need("mesa-vulkan-drivers", library="libvulkan_lvp.so"),  # a software GPU
    # Debian's own Python comes without the library that a bundle needs.
    *([Need(LIBPYTHON, library=f"{LIBPYTHON}.so.1.0")] if sys.base_prefix == "/usr" else []),
)


def say(text: str) -> None:
    """Tell the user, at once even when the output is a pipe."""
    print(f"[rigtune] {text}", flush=True)


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Return where wheels and logs are kept, outside the repository."""
    if given := env.get("RIGTUNE_CACHE"):
        return Path(given).absolute()
    if WINDOWS:
        local = env.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "rigtune" / "cache"
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rigtune"


def is_missing(need: Need) -> bool:
    """Tell whether the machine lacks this library, tool or file."""
    if need.file:
        return not Path(need.file).is_file()
    if need.tool:
        return shutil.which(need.tool) is None
    try:
        ctypes.CDLL(need.library)
    except OSError:
        return True
    return False


def missing_sentence(needs: Sequence[Need], *, debian: bool) -> str:
    """Say what is missing and, where we know it, the exact command that brings it."""
    if debian:
        packages = " ".join(need.package for need in needs)
        return f"Some system packages are missing. Run: sudo apt-get install {packages}"
    names = ", ".join(need.library or need.tool or need.file for need in needs)
    return f"This system lacks {names}. Install them with its package manager, then try again."


def may_install() -> bool:
    """Tell whether we may install Debian packages here."""
    # The platform is asked once more because geteuid does not exist on Windows.
    if sys.platform == "win32":
        return False
    return shutil.which("apt-get") is not None and os.geteuid() == 0


def install_system_parts(needs: Sequence[Need]) -> None:
    """Bring missing Debian packages when we may; otherwise say how."""
    missing = [] if WINDOWS else [need for need in needs if is_missing(need)]
    if not missing:
        return
    if not may_install():
        raise Problem(missing_sentence(missing, debian=shutil.which("apt-get") is not None))
    packages = [need.package for need in missing]
    apt = ["apt-get", "-y", "-o", "DPkg::Lock::Timeout=120"]
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    work("refreshing the list of Debian packages", [*apt, "update"], "apt-update", env)
    install = [*apt, "install", "--no-install-recommends", *packages]
    work(f"installing {', '.join(packages)}", install, "apt-install", env)


def newest_step(log: Path) -> str:
    """Return the newest "[12/143]" of a build log as words, or nothing."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 65536))
        steps = re.findall(rb"\[(\d+)/(\d+)\]", file.read())
    return f"step {steps[-1][0].decode()} of {steps[-1][1].decode()}, " if steps else ""


def work(label: str, command: Sequence[str | Path], log_name: str, env: Mapping[str, str]) -> None:
    """Run a command with its noise in a log; show that it lives, and the log if it fails."""
    log = cache_dir() / "logs" / f"{log_name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"{label} ...")
    begin = shown = time.monotonic()
    with (
        log.open("wb") as out,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **env},
            start_new_session=True,  # a group of its own, so that all of it can be ended
        ) as child,
    ):
        try:
            while child.poll() is None:
                time.sleep(0.05)
                if time.monotonic() - shown >= SECONDS_BETWEEN_SIGNS_OF_LIFE:
                    shown = time.monotonic()
                    say(f"    {newest_step(log)}{shown - begin:.0f} s")
        except BaseException:  # Ctrl+C above all: nothing may go on working behind the user's back
            end_tree(child)
            raise
    if child.returncode != 0:
        tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-15:])
        raise Problem(f"{tail}\nThis failed: {label}. The whole log: {log}")


def end_tree(child: subprocess.Popen[bytes]) -> None:
    """End a command and, where the system has process groups, all that it started."""
    for gently in (True, False):
        if sys.platform == "win32":
            child.terminate()
        else:
            os.killpg(child.pid, signal.SIGTERM if gently else signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            child.wait(SECONDS_TO_END)
            return


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Wait until no other bootstrap works in this checkout; the system frees a dead one's lock."""
    with path.open("a+b") as handle:
        waiting = False
        while not try_lock(handle.fileno()):
            if not waiting:
                say("another bootstrap is working in this checkout; waiting for it")
            waiting = True
            time.sleep(0.5)
        yield


def try_lock(descriptor: int) -> bool:
    """Take an exclusive lock that ends with this process; False when someone has it."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415  exists on Windows only

            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415  exists on POSIX only

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
