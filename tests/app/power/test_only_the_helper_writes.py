"""Proof over the source: only the helper can change hardware, and no test or CI can reach one."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HELPER = ROOT / "app/power/helper"
FOLDERS = ("app", "views", "probes", "packaging", "benchmarks", "tests", ".ci")

SETTERS = re.compile(r"nvml(Device|Unit|System|GpuInstance)\w*?(Set|Reset|Clear)[A-Z]|rsmi_\w*_set")
CONTROL_FILES = re.compile(
    r"power\d_(cap|max)\b|pp_dpm_|pp_od_clk|power_dpm_force|pwm\d\b|_limit_uw|scaling_max_freq"
)
WRITES = {"write_text", "write_bytes", "write", "open", "truncate"}


def sources(*folders: str) -> list[Path]:
    found = [p for folder in folders for p in (ROOT / folder).rglob("*.py")]
    assert len(found) > 20
    return sorted(found)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def names_of(path: Path) -> frozenset[str]:
    """Return every identifier and text constant that is code, documentation left out."""
    tree = tree_of(path)
    docs = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs:
            found.add(node.value)
    return frozenset(found)


@cache
def imports_of(path: Path) -> frozenset[str]:
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


@pytest.mark.parametrize("folder", ["app", "views", "probes", "packaging", "benchmarks"])
def test_setting_calls_exist_in_the_helper_only(folder: str) -> None:
    """No program but the helper names a call that sets something."""
    offenders = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / folder).rglob("*.py")
        if HELPER not in path.parents
        for name in names_of(path)
        if SETTERS.search(name)
    ]
    assert offenders == []


def test_the_search_finds_what_it_looks_for() -> None:
    """The helper itself is found by both searches, so the searches work."""
    everything = frozenset().union(*(names_of(p) for p in HELPER.rglob("*.py")))
    assert "nvmlDeviceSetPowerManagementLimit" in everything
    assert any(SETTERS.search(name) for name in everything)
    assert any(CONTROL_FILES.search(name) for name in everything)


def test_control_files_are_only_read_outside_the_helper() -> None:
    """A module outside the helper that names a control file writes no files at all."""
    for path in sources("app", "views", "probes"):
        if HELPER in path.parents:
            continue
        names = names_of(path)
        if any(CONTROL_FILES.search(name) for name in names):
            assert not names & (WRITES - {"open"}), path
            assert path.parts[-2] == "probes" or path.name == "admin.py", path


def test_nobody_imports_the_helper() -> None:
    """Programs never import it (the tests of the helper do)."""
    for path in sources("app", "views", "probes", "packaging", "benchmarks"):
        if HELPER not in path.parents:
            assert not any(name.startswith("app.power.helper") for name in imports_of(path)), path


def test_the_helper_imports_the_protocol_only() -> None:
    """What runs with an administrator's rights is small: protocol, records, standard library."""
    allowed = {"app.power.protocol", "app.domain.record", "msgspec", "pynvml"}
    for path in HELPER.rglob("*.py"):
        for name in imports_of(path):
            is_own = name.startswith("app.power.helper")
            is_allowed = any(name == a or name.startswith(a + ".") for a in allowed)
            assert is_own or is_allowed or name.partition(".")[0] in sys.stdlib_module_names, name


def test_the_protocol_pulls_in_nothing_else() -> None:
    """What the protocol imports runs with those rights too."""
    paths = (ROOT / "app/power/protocol.py", ROOT / "app/domain/record.py")
    ours = {n for path in paths for n in imports_of(path) if n.startswith("app")}
    assert ours <= {"app.domain.record", "app.domain.record.Record", "app.power", "app.domain"}
    for package in ("app", "app/domain", "app/power"):
        assert imports_of(ROOT / package / "__init__.py") == frozenset()


def test_no_test_and_no_ci_can_reach_a_device() -> None:
    """Only the entry point names the real machine; nothing imports or starts it, and it refuses."""
    entry = HELPER / "__main__.py"
    for path in HELPER.rglob("*.py"):
        has_root = any(name == "/" for name in names_of(path))
        assert has_root == (path == entry), path
    texts = [p for f in FOLDERS for p in (ROOT / f).rglob("*") if p.suffix in {".py", ".yml", ""}]
    texts += list((ROOT / ".github").rglob("*.yml"))
    for path in texts:
        if path == Path(__file__).resolve() or not path.is_file() or HELPER in path.parents:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        assert "app.power.helper.__main__" not in text, path
        assert not re.search(r"-m\W+app\.power\.helper", text), path
    assert "sys.executable" in entry.read_text()


def test_no_test_loads_the_real_nvml_into_the_helper() -> None:
    """The helper's NVIDIA back end gets a stand-in everywhere but in its entry point."""
    for path in HELPER.rglob("*.py"):
        if path.name != "__main__.py":
            assert "pynvml" not in imports_of(path), path
    for path in (ROOT / "tests/app/power").rglob("*.py"):
        assert "pynvml" not in imports_of(path), path
