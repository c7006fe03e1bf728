"""Every module can be imported on Windows: nothing asks for what only other systems have."""

import subprocess
import sys
from pathlib import Path

assert sys.platform == "win32"

ROOT = Path(__file__).resolve().parents[2]
# The privileged helper of Linux: never imported by another program, checked by its own tests.
NOT_HERE = ("app.power.helper",)
CODE = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(len(sys.argv) - 1)
"""


def modules(package: str) -> list[str]:
    """Return the names of a package's modules but entry points, which start something."""
    parts = [p.relative_to(ROOT).with_suffix("").parts for p in (ROOT / package).rglob("*.py")]
    names = {".".join(p[:-1] if p[-1] == "__init__" else p) for p in parts if p[-1] != "__main__"}
    return sorted(name for name in names if not name.startswith(NOT_HERE))


def test_every_module_is_imported() -> None:
    """Core, worker, probes and window; the window apart from the engine, as when they run."""
    core = modules("app") + modules("probes")
    for names in (core, modules("views")):
        assert len(names) > 20
        command = [sys.executable, "-W", "error", "-c", CODE, *names]
        done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, text=True)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) == len(names)
