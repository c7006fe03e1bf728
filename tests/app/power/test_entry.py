"""The helper's entry point refuses to work from a source tree."""

import subprocess
import sys
from pathlib import Path

from app.power.protocol import Bye, decode_reply

ROOT = Path(__file__).resolve().parents[3]


def test_source_tree_is_not_the_installed_program() -> None:
    """Started from here, even as root, it says goodbye before it looks at any device."""
    code = "import runpy; runpy.run_module('app.power.' + 'helper', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 2
    bye = decode_reply(done.stdout) if done.stdout else None
    assert sys.platform == "win32" or bye == Bye(reason="not_allowed")
