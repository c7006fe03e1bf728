"""What a Vulkan engine needs to be built: shader compiler, headers, and a place to find them."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from boot_host import (
    BUILD_NEEDS,
    Need,
    Problem,
    cache_dir,
    install_system_parts,
    is_missing,
    may_install,
    work,
)

# Layer settings came with this one; llama.cpp uses nothing newer without asking first.
OLDEST_HEADERS = 268
# Set by the installer of the Vulkan development kit for Windows.
SDK_VARIABLE = "VULKAN_SDK"
SYSTEM_HEADERS = Path("/usr/include")
# Debian 12's own headers are number 239; the release after it has 309.
HEADERS_FROM = "trixie"
HEADERS_PACKAGE = "libvulkan-dev"
NEEDS = (
    Need("libvulkan1", library="libvulkan.so.1"),
    Need("glslc", tool="glslc"),
    Need("spirv-headers", file="/usr/share/cmake/SPIRV-Headers/SPIRV-HeadersConfig.cmake"),
)


def is_possible() -> bool:
    """Tell, without asking the network, whether this machine has or may get what is needed."""
    if sys.platform == "win32":
        return SDK_VARIABLE in os.environ
    if sys.platform != "linux":
        return False
    if may_install():
        return True
    there = not any(is_missing(need) for need in NEEDS)
    return there and (find_headers() is not None or is_debian())


def prepare() -> tuple[str, ...]:
    """Bring everything a Vulkan build needs and return the CMake definitions that point to it."""
    if sys.platform == "win32":
        return ()  # CMake finds the kit by the variable that its installer sets
    # The compiler too: it says where the loader's library lies.
    install_system_parts((*BUILD_NEEDS, *NEEDS))
    headers = find_headers()
    if headers is None and is_debian():
        headers = fetch_headers()
    elif headers is None:
        install_system_parts((Need(HEADERS_PACKAGE, file=f"{SYSTEM_HEADERS}/vulkan/vulkan.hpp"),))
        headers = find_headers()
    if headers is None:
        raise Problem(f"The Vulkan headers here are older than number {OLDEST_HEADERS}.")
    # The loader itself and not its development link, which would bring the old headers along.
    ask = ["g++", "-print-file-name=libvulkan.so.1"]
    loader = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    return f"Vulkan_INCLUDE_DIR={headers}", f"Vulkan_LIBRARY={Path(loader).resolve()}"


def find_headers() -> Path | None:
    """Return the folder of Vulkan headers that are new enough: the system's, or fetched ones."""
    for folder in (SYSTEM_HEADERS, private_prefix() / "usr" / "include"):
        if (header_number(folder) or 0) >= OLDEST_HEADERS:
            return folder
    return None


def header_number(folder: Path) -> int | None:
    """Return the number of the Vulkan headers in a folder; it grows across 1.3, 1.4 and so on."""
    try:
        text = (folder / "vulkan" / "vulkan_core.h").read_text("utf-8")
    except OSError:
        return None
    number = re.search(r"^#define VK_HEADER_VERSION (\d+)$", text, re.MULTILINE)
    has_cpp = (folder / "vulkan" / "vulkan.hpp").is_file()
    return int(number[1]) if number and has_cpp else None


def private_prefix() -> Path:
    """Return where fetched headers are unpacked: in the cache, never in the system."""
    return cache_dir() / f"vulkan-headers-{HEADERS_FROM}"


def os_release() -> dict[str, str]:
    """Return what the system says it is; nothing when it does not say."""
    with suppress(OSError):
        return platform.freedesktop_os_release()
    return {}


def is_debian() -> bool:
    """Tell whether packages of another Debian release can be asked for and unpacked."""
    tools = all(shutil.which(tool) for tool in ("apt-get", "dpkg-deb"))
    return tools and os_release().get("ID") == "debian"


def find_mirror(listing: str, codename: str) -> str | None:
    """Return the mirror the system takes its own release from, out of apt's list of indexes.

    Args:
        listing: Lines ``URI|release|component|codename``.
        codename: The system's own release.
    """
    for line in listing.splitlines():
        match line.split("|"):
            case [uri, release, "main", name] if codename and codename in {release, name}:
                return uri
    return None


def fetch_headers() -> Path:
    """Unpack a newer Debian's headers into the cache, with apt and its signatures.

    Apt gets lists and sources of its own for this; those of the system stay as they are.
    """
    form = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(CODENAME)"
    ask = ["apt-get", "indextargets", "--format", form, "Created-By: Packages"]
    listing = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
    mirror = find_mirror(listing, os_release().get("VERSION_CODENAME", ""))
    if mirror is None:
        raise Problem("Apt names no mirror to fetch newer Vulkan headers from.")
    target = private_prefix()
    scratch = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        download(mirror, scratch)
        package = next(scratch.glob(f"{HEADERS_PACKAGE}_*.deb"))
        unpack = ["dpkg-deb", "-x", str(package), str(scratch / "out")]
        work("unpacking them into the cache", unpack, "vulkan-unpack", {})
        shutil.rmtree(target, ignore_errors=True)
        (scratch / "out").replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target / "usr" / "include"


def download(mirror: str, scratch: Path) -> None:
    """Download the headers' package into scratch, with lists that are thrown away after."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "sources.list").write_text(f"deb {mirror} {HEADERS_FROM} main\n", "utf-8")
    apt = private_apt(scratch)
    work("looking for newer Vulkan headers", [*apt, "update"], "vulkan-lists", {})
    # apt-get writes the package into the folder that it works in.
    get = ["env", "--chdir", str(scratch), *apt, "download", HEADERS_PACKAGE]
    work("fetching newer Vulkan headers", get, "vulkan-headers", {})


def private_apt(scratch: Path) -> list[str]:
    """Return an apt-get that reads and writes nothing of the system's sources and lists."""
    settings = {
        "Dir::Etc::sourcelist": scratch / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": scratch / "state",
        "Dir::Cache": scratch / "cache",
        "Acquire::Languages": "none",
        # Without it a list that could not be had is a mere warning.
        "APT::Update::Error-Mode": "any",
    }
    return ["apt-get", *(part for k, v in settings.items() for part in ("-o", f"{k}={v}"))]
