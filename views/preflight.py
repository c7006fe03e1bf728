"""Says in a sentence what the window lacks, before Qt would end the program without one."""

import contextlib
import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable

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
SHOWN_S = 600.0
"""How long the message may stay open before the program ends anyway."""
NO_DISPLAY = (
    "There is no display to open RigTune's window on (DISPLAY and WAYLAND_DISPLAY are not set). "
    "Everything works in the terminal: rigtune tune demo"
)


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
        "Without a window everything works in the terminal: rigtune tune demo"
    )


def tell(text: str) -> None:
    """Say ``text`` where the user sees it: on stderr, and in a window of some other program.

    Started from a menu there is no terminal to read, and Qt itself cannot show anything.
    """
    sys.stderr.write(text + "\n")
    if not has_display():
        return
    for command in (
        ("zenity", "--error", "--title=RigTune", "--no-markup", "--text", text),
        ("kdialog", "--title", "RigTune", "--error", text),
        ("xmessage", "-center", text),
        ("notify-send", "RigTune", text),
    ):
        program = shutil.which(command[0])
        if program is None:
            continue
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([program, *command[1:]], check=True, timeout=SHOWN_S)
            return


def _loads(name: str, load: Callable[[str], object]) -> bool:
    try:
        load(name)
    except OSError:
        return False
    return True
