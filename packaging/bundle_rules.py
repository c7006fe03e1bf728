"""What of the things PyInstaller finds goes into the bundle."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Parts of what we use that would only bring more with them.
NEVER = ("tkinter", "pyqtgraph.opengl", "pyqtgraph.examples", "setuptools")

LOCKS = Path(__file__).resolve().parent / "requirements"

# What PySide6's hook or pyqtgraph would pull in although no view uses it.
QT_MODULES_NOT_USED = tuple(
    f"PySide6.{name}"
    for name in (
        *("QtNetwork", "QtQml", "QtQuick", "QtQuickWidgets", "QtPrintSupport", "QtSql", "QtTest"),
        *("QtDesigner", "QtHelp", "QtUiTools", "QtXml", "QtSvgWidgets", "QtConcurrent", "QtDBus"),
    )
)

# Qt's own libraries that the views or a plugin below need.
QT_LIBRARIES = (
    *("Core", "Gui", "Widgets", "Svg", "OpenGL", "OpenGLWidgets", "DBus", "XcbQpa"),
    *("WaylandClient", "WlShellIntegration"),
)

# Input contexts matter: without them nobody types Chinese. The GTK theme plugin is left out,
# because it would bring a whole second GTK; file dialogs come through the desktop portal.
QT_PLUGINS = {
    "platforms": ("qxcb", "qwayland", "qoffscreen", "qwindows"),
    "platforminputcontexts": ("composeplatforminputcontext", "ibusplatforminputcontext"),
    "platformthemes": ("qxdgdesktopportal",),
    "xcbglintegrations": ("qxcb-egl-integration", "qxcb-glx-integration"),
    "wayland-shell-integration": ("xdg-shell",),
    "wayland-decoration-client": ("adwaita", "bradient"),
    "wayland-graphics-integration-client": ("qt-plugin-wayland-egl",),
    "imageformats": ("qsvg",),
    "iconengines": ("qsvgicon",),
    "styles": ("qmodernwindowsstyle",),
}

# GPU drivers belong to the machine, never to the bundle; nothing here draws with OpenGL.
DRIVERS = (
    *("libcuda.so", "libvulkan.so", "libnvidia", "vulkan-1.dll", "nvcuda.dll", "nvml.dll"),
    "opengl32sw.dll",
)

# What graphics drivers and the desktop's font settings are built against. A copy from the older
# system that the bundle was built on would be found first and keep the machine's own driver from
# loading ("GLIBCXX_3.4.32 not found"). Every desktop has them, and AppImage leaves them out too.
OF_THE_SYSTEM = (
    *("libstdc++.so", "libgcc_s.so", "libz.so", "libzstd.so", "libexpat.so", "libelf", "libbsd."),
    *("libdrm", "libgbm.so", "libGL", "libEGL", "libwayland-", "libX11", "libXau", "libXdmcp"),
    *("libXext", "libxshmfence", "libxcb.so", "libxcb-dri", "libxcb-glx", "libxcb-present"),
    *("libxcb-randr", "libxcb-shm", "libxcb-sync", "libxcb-xfixes", "libmd.so"),
    *("libfontconfig.so", "libfreetype.so", "libpng16.so", "libbrotli"),
    *("libdbus-1.so", "libsystemd.so", "libcap.so", "libgcrypt.so", "libgpg-error.so", "liblz4.so"),
)

# Of the modules for each kind of processor, the one with matrix tiles (AMX). GCC drops the rows and
# columns of the tiles' description, because its header says that only its first 8 bytes are read;
# each long prompt then ends with an illegal instruction on a Xeon that has them (seen with GCC 12
# on a real one). Without it such a processor gets the next best module.
TILES = "ggml-cpu-sapphirerapids"


def not_locked() -> list[str]:
    """Return the modules that happen to be installed here but are no part of RigTune.

    Libraries try to import many others; what a test or a builder needs must not come along.
    """
    locks = "".join((LOCKS / name).read_text("utf-8") for name in ("run.txt", "engine.txt"))
    ours = {"rigtune", *map(_plain, re.findall(r"^([\w.-]+)==", locks, re.MULTILINE))}
    installed = metadata.packages_distributions().items()
    return [module for module, owners in installed if not ours & set(map(_plain, owners))]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class Entry(NamedTuple):
    """One line of PyInstaller's tables.

    Attributes:
        place: Where the file goes, below the bundle's folder.
        source: Where it comes from; for a link, what it points to, below the bundle's folder.
        kind: PyInstaller's name for its kind, e.g. "BINARY", "EXTENSION", "SYMLINK", "DATA".
    """

    place: str
    source: str
    kind: str


def shipped(table: Iterable[tuple[str, str, str]], needs: Callable[[str], set[str]]) -> list[Entry]:
    """Return the files that belong into the bundle.

    Args:
        table: What PyInstaller found.
        needs: Tells the names of the libraries that the file at a path is linked against.
    """
    wanted = [Entry(*line) for line in table if is_shipped(line[0])]
    places = {entry.place for entry in wanted}
    wanted = [e for e in wanted if e.kind != "SYMLINK" or e.source in places]
    return without_orphans(wanted, needs)


def write_list(folder: Path, entries: Iterable[tuple[str, str, str]]) -> Path:
    """Write the names of the bundle's files, by which the program notices that one is gone."""
    path = folder / "files.txt"
    names = sorted({place.replace("\\", "/") for place, _, _ in entries})
    path.write_text("".join(f"{name}\n" for name in names), "utf-8")
    return path


def is_shipped(place: str) -> bool:
    """Tell whether a file belongs into the bundle, by its place there."""
    path = PurePosixPath(place.replace("\\", "/"))
    if path.name.startswith((*DRIVERS, *OF_THE_SYSTEM)) or TILES in path.name:
        return False
    for prefix in ("libQt6", "Qt6"):
        if path.name.startswith(prefix):
            return path.name.removeprefix(prefix).split(".")[0] in QT_LIBRARIES
    if path.parts[0] == "PySide6":
        return _is_qt_used(path)
    if path.suffix == ".ts":  # what translators edit; the window reads what is made of it
        return False
    return path.parts[:2] not in {("pyqtgraph", "icons"), ("pyqtgraph", "colors")}


def _is_qt_used(path: PurePosixPath) -> bool:
    if "translations" in path.parts or "qml" in path.parts:
        return False
    if "plugins" in path.parts:
        kind = path.parts[path.parts.index("plugins") + 1]
        return path.stem.removeprefix("lib").removesuffix("plugin") in QT_PLUGINS.get(kind, ())
    return True


def without_orphans(entries: list[Entry], needs: Callable[[str], set[str]]) -> list[Entry]:
    """Drop libraries of the system that only something we dropped had asked for.

    Those lie at the top of the folder; what lies deeper belongs to a package.
    """
    loose = {e.place: e for e in entries if _is_loose(e)}
    todo = [e for e in entries if e.place not in loose and e.kind != "DATA"]
    kept: set[str] = set()
    while todo:
        entry = todo.pop()
        asked = {entry.source} if entry.kind == "SYMLINK" else needs(entry.source)
        fresh = [loose[name] for name in asked if name in loose and name not in kept]
        kept.update(e.place for e in fresh)
        todo += fresh
    return [e for e in entries if e.place not in loose or e.place in kept]


def _is_loose(entry: Entry) -> bool:
    is_library = ".so" in entry.place and "/" not in entry.place and entry.kind == "BINARY"
    return is_library and not entry.place.startswith("libpython")
