"""Wine: what it needs of Debian, the prefix that it lives in, and how a program runs in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from boot_host import Need, Problem, work

if TYPE_CHECKING:
    from collections.abc import Sequence

NEEDS = (
    Need("wine", tool="wine"),
    Need("wine64", file="/usr/lib/wine/wine64"),
    Need("g++-mingw-w64-x86-64-posix", tool="x86_64-w64-mingw32-g++-posix"),
    Need("binutils-mingw-w64-x86-64", tool="x86_64-w64-mingw32-objdump"),
    Need("xvfb", tool="Xvfb"),
    Need("xauth", tool="xauth"),
    Need("libgl1", library="libGL.so.1"),
    Need("fonts-wine", file="/usr/share/wine/fonts/tahoma.ttf"),
    Need("fonts-dejavu-core", file="/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"),
)
WINE_DLLS = Path("/usr/lib/x86_64-linux-gnu/wine/x86_64-windows")
FONTS = Path("/usr/share/fonts/truetype/dejavu")
# Wine's builtin DLLs that are replaced by stand-ins of ours (see c/).
REPLACED = ("ucrtbase", "mscms")
# winedbg starts at a call of something that Wine only stubs, is slow and may hang.
SWITCHED_OFF = ("winedbg.exe", "winemenubuilder.exe", "mscoree", "mshtml")
SECONDS_SERVICES_LINGER = 60
_BUILTIN_MARK = slice(0x40, 0x50)
_CHUNK_BYTES = 1 << 16


class Wine(NamedTuple):
    """One Wine prefix and the Windows Python beside it, in a folder of the cache."""

    home: Path

    @property
    def system(self) -> Path:
        """Return the folder of Windows' own libraries."""
        return self.home / "prefix" / "drive_c" / "windows" / "system32"

    @property
    def python(self) -> Path:
        """Return the folder of the Windows Python."""
        return self.home / "python"

    def environment(self) -> dict[str, str]:
        """Return the environment for Wine's own programs and for those it runs."""
        # Wine drops QT_* and VK_* of the Unix side unless they come as WINEQT_* and WINEVK_*.
        graphics = {f"WINE{k}": v for k, v in os.environ.items() if k.startswith(("QT_", "VK_"))}
        ours = {
            "WINEPREFIX": str(self.home / "prefix"),
            "WINEARCH": "win64",
            "WINEDEBUG": os.environ.get("WINEDEBUG", "-all"),
            # Byte code of Windows paths stays out of the checkout.
            "PYTHONPYCACHEPREFIX": windows_path(self.home / "pyc"),
        }
        foreign = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        return {k: v for k, v in {**os.environ, **graphics, **ours}.items() if k not in foreign}

    def quiet(self, label: str, *command: str | Path) -> None:
        """Run one of Wine's own programs with its noise in a log."""
        work(label, command, "wine", self.environment())

    def run(self, command: Sequence[str | Path], cwd: Path | None = None) -> int:
        """Run a Windows program, its output copied to ours; return its exit code.

        Python cannot start under Wine 8 with a regular file as stdout or stderr, so it always
        gets pipes.
        """
        self._start_services()
        child = subprocess.Popen(
            ["wine", *command],  # noqa: S607  Debian's, found on the PATH like all tools here
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(),
            cwd=cwd,
        )
        pumps = [
            threading.Thread(target=_copy, args=pair, daemon=True)
            for pair in ((child.stdout, sys.stdout.buffer), (child.stderr, sys.stderr.buffer))
        ]
        for pump in pumps:
            pump.start()
        try:
            code = child.wait()
        except KeyboardInterrupt:
            child.terminate()
            raise
        for pump in pumps:  # a service started meanwhile may keep the pipe open for good
            pump.join(5)
        return code

    def _start_services(self) -> None:
        """Start Wine's services and its desktop apart.

        They would keep the pipes of the first program open and count as its children. They keep
        to the first display they saw, so another display means new services.
        """
        shown = os.environ.get("DISPLAY", "")
        memory = self.home / "display"
        if not memory.is_file() or memory.read_text("utf-8") != shown:
            self.stop()
            memory.write_text(shown, "utf-8")
        linger = f"-p{SECONDS_SERVICES_LINGER}"
        for command in (["wineserver", linger], ["wine", "rundll32", "user32,MessageBeep"]):
            subprocess.run(
                command,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )

    def stop(self) -> None:
        """End everything that runs in this prefix."""
        for command in (["wineserver", "-k"], ["wineserver", "-w"]):
            subprocess.run(command, env=self.environment(), check=False)


def windows_path(path: Path) -> str:
    """Return a Unix path as Windows programs see it under Wine: on drive Z."""
    return "Z:" + str(path).replace("/", "\\")


def make_prefix(wine: Wine, stand_ins: Path) -> None:
    """Make the Wine prefix anew: Windows 10, no debugger, our stand-ins for what Wine 8 lacks."""
    with suppress(FileNotFoundError):
        wine.stop()
    shutil.rmtree(wine.home / "prefix", ignore_errors=True)
    quiet = {**wine.environment(), "WINEDLLOVERRIDES": "mscoree,mshtml="}
    work("making a Wine prefix", ["wine", "wineboot", "-i"], "wineboot", quiet)
    wine.quiet("waiting for Wine", "wineserver", "-w")
    wine.quiet("making it Windows 10", "wine", "winecfg", "-v", "win10")
    overrides = {**dict.fromkeys(REPLACED, "native,builtin"), **dict.fromkeys(SWITCHED_OFF, "")}
    for name, value in overrides.items():
        key = r"HKCU\Software\Wine\DllOverrides"
        add = ("wine", "reg", "add", key, "/v", name, "/d", value, "/f")
        wine.quiet(f"setting {name} to '{value}'", *add)
    wine.stop()
    for name in REPLACED:
        own = bytearray((WINE_DLLS / f"{name}.dll").read_bytes())
        if own[_BUILTIN_MARK] != b"Wine builtin DLL":
            raise Problem(f"{name}.dll of this Wine looks different; it was tried with Wine 8.0.")
        own[_BUILTIN_MARK] = b"Wine renamed DLL"  # without the mark it loads under another name
        (wine.system / f"{name}_wine.dll").write_bytes(own)
    for library in stand_ins.glob("*.dll"):
        (wine.system / library.name).unlink(missing_ok=True)
        shutil.copy(library, wine.system)
    for font in FONTS.glob("DejaVuSans*.ttf"):
        shutil.copy(font, wine.system.parent / "Fonts")


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    while data := os.read(source.fileno(), _CHUNK_BYTES):
        target.write(data)
        target.flush()
