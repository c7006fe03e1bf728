"""The kernel's sensor folders (hwmon): found by name, scaled to our units."""

from probes.reading import Absence, scaled, whole_number
from probes.tree import Tree

MICRO = 1e-6
MILLI = 1e-3


def folder_of(tree: Tree, device: str, names: tuple[str, ...]) -> str | None:
    """Return the sensor folder below ``device`` whose driver is one of ``names``."""
    for entry in tree.names(f"{device}/hwmon"):
        path = f"{device}/hwmon/{entry}"
        if tree.text(f"{path}/name") in names:
            return path
    return None


def sensor(tree: Tree, folder: str | None, *files: str, factor: float = 1.0) -> object:
    """Return the first readable of ``files``, scaled; else why the last one is absent."""
    value: int | Absence = Absence.NOT_SUPPORTED
    for file in files:
        value = whole_number(tree.text(f"{folder}/{file}")) if folder else value
        if not isinstance(value, Absence):
            return scaled(value, factor)
    return value


def temperature(tree: Tree, folder: str | None, *labels: str, suffix: str = "input") -> object:
    """Return the °C of the first sensor that carries one of ``labels``, best first."""
    by_label = {tree.text(f"{folder}/temp{n}_label"): n for n in range(1, 6)} if folder else {}
    for label in labels:
        if label in by_label:
            return sensor(tree, folder, f"temp{by_label[label]}_{suffix}", factor=MILLI)
    return Absence.NOT_SUPPORTED
