"""Says in a sentence what the window lacks, before Qt would end the program without one."""

import ctypes
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence

from app.runtime import has_display

# Library: Debian package. The first two are needed to import Qt's widgets at all.
LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
}
X11_LIBRARIES = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
}
NO_DISPLAY = (
    "There is no display to open RigTune's window on (DISPLAY and WAYLAND_DISPLAY are not set). "
    "Everything works in the terminal: rigtune tune MODEL.gguf"
)

# Programs of desktops that show a message, the ones that wait for the reader first.
MESSENGERS: tuple[tuple[str, ...], ...] = (
    ("zenity", "--error", "--no-markup", "--width=480", "--title=RigTune", "--text"),
    ("kdialog", "--title", "RigTune", "--error"),
    ("yad", "--error", "--no-markup", "--width=480", "--title=RigTune", "--text"),
    ("xmessage", "-center", "-title", "RigTune"),
    ("notify-send", "--urgency=critical", "--app-name=RigTune", "RigTune"),
)

COLUMNS = 76


def tell(text: str) -> None:
    """Show a sentence where Qt cannot: in the terminal, or started from an icon by the desktop.

    Each desktop has one of ``MESSENGERS``; where none works the sentence is in the session's log.
    """
    if sys.platform == "win32" and sys.stderr is None:
        icon_error = 0x10  # MB_ICONERROR (winuser.h)
        ctypes.WinDLL("user32").MessageBoxW(None, text, "RigTune", icon_error)
        return
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")
        if sys.stderr.isatty() or not has_display():
            return
    # not all of them break lines by themselves
    lines = textwrap.fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)
    for program, *arguments in MESSENGERS:
        found = shutil.which(program)
        if found and subprocess.call([found, *arguments, lines], stderr=subprocess.DEVNULL) in {
            0,
            1,
        }:
            return  # 1: closed by its cross


def missing_libraries(
    *, needs_x11: bool, load: Callable[[str], object] = ctypes.CDLL
) -> tuple[str, ...]:
    """Return the system libraries that are not there (Linux; elsewhere Qt brings its own)."""
    if not sys.platform.startswith("linux"):
        return ()
    wanted = {**LIBRARIES, **(X11_LIBRARIES if needs_x11 else {})}
    return tuple(name for name in wanted if not _loads(name, load))


def sentence(missing: tuple[str, ...]) -> str:
    """Return what to do about missing libraries."""
    packages = {**LIBRARIES, **X11_LIBRARIES}
    return (
        f"RigTune's window needs {', '.join(missing)}, which this system lacks. On Debian and "
        f"Ubuntu: sudo apt install {' '.join(packages[name] for name in missing)}. "
        "Without a window everything works in the terminal: rigtune tune MODEL.gguf"
    )


def damaged(missing: Sequence[str]) -> str:
    """Return what to do when parts of the installed program are not there."""
    more = ", …" if len(missing) > 3 else ""
    return (
        f"Parts of RigTune are missing: {', '.join(missing[:3])}{more}. "
        "Perhaps a virus scanner moved them away, or a copy broke off. Install RigTune again; your "
        "results stay."
    )


def _loads(name: str, load: Callable[[str], object]) -> bool:
    try:
        load(name)
    except OSError:
        return False
    return True
