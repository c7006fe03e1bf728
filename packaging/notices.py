"""Writes what the bundle says about its parts: licence texts, list of parts, version resource.

Everything comes from the metadata of what the bundle was really made of.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

TEXTS = Path(__file__).resolve().parent / "licences"
# Licence texts that a package names without carrying them, and those of what is inside a package.
EXTRA_TEXTS = {
    "pyside6_essentials": ("LGPL-3.0.txt", "GPL-3.0.txt"),
    "shiboken6": ("LGPL-3.0.txt", "GPL-3.0.txt"),
    "llama_cpp_python": ("llama.cpp.txt",),
    "nvidia-ml-py": ("nvidia-ml-py.txt",),
}
QT_SOURCE = (
    "Qt and PySide6 are used under the LGPL 3: their libraries lie as files of their own in\n"
    "_internal/PySide6 and may be replaced by your own build of the same version. Their source is\n"
    "at https://download.qt.io/official_releases/."
)


class Part(NamedTuple):
    """Something of others in the bundle.

    Attributes:
        name: As its metadata spells it.
        version: Of the copy in the bundle.
        licence: The short form its metadata gives, e.g. "MIT".
        kind: Prefix of its package URL: "pypi", "deb/debian" or "generic".
        texts: Files with the licence in full.
    """

    name: str
    version: str
    licence: str
    kind: str
    texts: tuple[Path, ...]


def write(folder: Path, sources: Iterable[str]) -> list[Path]:
    """Write NOTICES.txt and sbom.json for a bundle made of the files ``sources``."""
    parts = parts_of({Path(source) for source in sources})
    notices, sbom = folder / "NOTICES.txt", folder / "sbom.json"
    notices.write_text(notices_text(parts), "utf-8")
    sbom.write_text(json.dumps(sbom_document(parts), indent=1) + "\n", "utf-8")
    return [notices, sbom]


def parts_of(sources: set[Path]) -> list[Part]:
    """Return the packages that at least one of the files belongs to, by name."""
    parts = [python_itself(), pyinstaller()]
    rest = {path.as_posix(): path for path in sources}  # a path as text is quicker to make
    for package in metadata.distributions():
        root = Path(str(package.locate_file(""))).as_posix()
        own = [place for file in package.files or () if (place := f"{root}/{file}") in rest]
        if own and package.metadata["Name"] != "rigtune":
            parts.append(python_package(package))
        for place in own:
            rest.pop(place, None)
    stdlib = Path(sysconfig.get_path("stdlib")).resolve()
    foreign = [p for p in rest.values() if p.is_absolute() and stdlib not in p.resolve().parents]
    parts += system_packages({p for p in foreign if ".so" in p.name})
    return sorted(parts, key=lambda part: part.name.lower())


def python_package(package: metadata.Distribution) -> Part:
    """Return what a Python package says about its licence."""
    about, name = package.metadata, package.metadata["Name"]
    said = [about[key] for key in ("License-Expression", "License") if key in about]
    short = next((text for text in said if text), "")
    if not short or "\n" in short:
        marks = about.get_all("Classifier") or []
        short = ", ".join(m.split(" :: ")[-1] for m in marks if m.startswith("License"))
    words = ("LICEN", "COPYING", "NOTICE")
    texts = [
        Path(str(package.locate_file(file)))
        for file in package.files or ()
        if ".dist-info" in file.parts[0] and file.name.upper().startswith(words)
    ]
    texts += [TEXTS / text for text in EXTRA_TEXTS.get(name.replace("-", "_"), ())]
    texts += [TEXTS / text for text in EXTRA_TEXTS.get(name, ())]
    return Part(name, package.version, short or "see its text", "pypi", tuple(texts))


def python_itself() -> Part:
    """Return CPython, whose interpreter and standard library are in the bundle."""
    places = (Path(sysconfig.get_path("stdlib")), Path(sys.base_prefix))
    texts = tuple(p / "LICENSE.txt" for p in places if (p / "LICENSE.txt").is_file())
    return Part("Python", sys.version.split()[0], "PSF-2.0", "generic", texts[:1])


def pyinstaller() -> Part:
    """Return PyInstaller, whose start program is in the bundle; it is used when bundling."""
    part = python_package(metadata.distribution("pyinstaller"))
    return part._replace(licence="GPL-2.0-or-later WITH Bootloader-exception")


def system_packages(files: set[Path]) -> list[Part]:
    """Return the Debian packages that shared libraries of the system come from."""
    if shutil.which("dpkg-query") is None:
        return []
    found: dict[str, Part] = {}
    for file in sorted(files):
        # A merged /usr: packages may own the file by either name.
        for path in (file.resolve(), Path(str(file.resolve()).removeprefix("/usr"))):
            owner = _ask("--search", str(path)).partition(":")[0].strip()
            if owner and "," not in owner:
                found.setdefault(owner, _system_package(owner))
                break
    return list(found.values())


def _system_package(name: str) -> Part:
    version = _ask("--show", "--showformat=${Version}\\n", name).partition("\n")[0]
    text = Path("/usr/share/doc", name, "copyright")
    texts = (text,) if text.is_file() else ()
    return Part(name, version, "see its text", "deb/debian", texts)


def _ask(*arguments: str) -> str:
    command = ["dpkg-query", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def notices_text(parts: Iterable[Part]) -> str:
    """Return the file that names every part and gives its licence; equal texts appear once."""
    heads: list[str] = []
    shown: dict[str, list[str]] = {}
    for part in parts:
        for path in part.texts:
            text = path.read_text("utf-8", errors="replace").strip()
            shown.setdefault(text, []).append(f"{part.name} ({path.name})")
        heads.append(f"{part.name} {part.version}: {part.licence}")
    line = "=" * 88
    texts = [f"{line}\n{', '.join(users)}\n{line}\n\n{text}" for text, users in shown.items()]
    title = "RigTune is under the Apache License 2.0. This folder also holds:"
    return "\n\n".join([title, "\n".join(heads), QT_SOURCE, *texts]) + "\n"


def sbom_document(parts: Iterable[Part]) -> dict[str, object]:
    """Return a CycloneDX 1.6 list of the parts."""
    components = [
        {
            "type": "library",
            "name": part.name,
            "version": part.version,
            "purl": f"pkg:{part.kind}/{part.name.lower()}@{quote(part.version, safe='')}",
            "licenses": [{"license": {"name": part.licence}}],
        }
        for part in parts
    ]
    rigtune = {"type": "application", "name": "rigtune", "version": metadata.version("rigtune")}
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    return {**head, "metadata": {"component": rigtune}, "components": components}


def version_resource(program: str, folder: Path) -> str:
    """Write what Windows shows as the properties of an executable; return the file's place."""
    version = metadata.version("rigtune")
    numbers = tuple(int(piece) for piece in f"{version}.0.0.0".split(".")[:4])
    texts = {
        "CompanyName": "RigTune",
        "FileDescription": "RigTune",
        "FileVersion": version,
        "InternalName": program,
        "OriginalFilename": f"{program}.exe",
        "ProductName": "RigTune",
        "ProductVersion": version,
    }
    strings = ", ".join(f"StringStruct({k!r}, {v!r})" for k, v in texts.items())
    path = folder / f"{program}.version.txt"
    path.write_text(
        f"VSVersionInfo(ffi=FixedFileInfo(filevers={numbers}, prodvers={numbers}, mask=0x3f,"
        " flags=0, OS=0x40004, fileType=1, subtype=0, date=(0, 0)), kids=["
        f"StringFileInfo([StringTable('040904B0', [{strings}])]),"
        " VarFileInfo([VarStruct('Translation', [1033, 1200])])])\n",
        "utf-8",
    )
    return str(path)
