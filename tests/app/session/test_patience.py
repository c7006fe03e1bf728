"""A drive that does not answer costs its budget, not the program."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.session.patience import within
from tests.fakes.gguf_bytes import small_llama

REPOSITORY = Path(__file__).resolve().parents[3]
DRIVE = REPOSITORY / "tests" / "fakes" / "stalled_drive.c"
STALL_S = 60
# the command line as a person runs it, with less patience
INSPECT = """
import sys
from app.session import patience
patience.HEADER_S = float(sys.argv[2])
from app.cli.main import run
from probes import registry
sys.exit(run(["inspect", sys.argv[1], "--json"], registry))
"""


def test_what_is_read_in_time_is_returned_or_raised() -> None:
    """The caller sees the result and the error as if it had read itself."""
    assert within(5.0, "x", lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(5.0, "x", lambda: 1 / 0)


def test_what_is_not_read_in_time_is_named() -> None:
    """The wait ends with a sentence while the read goes on."""
    released = threading.Event()
    with pytest.raises(EnvironmentProblem) as caught:
        within(0.01, "model.gguf", released.wait)
    released.set()
    assert caught.value.info.code == "model_stalled"
    assert "model.gguf" in caught.value.info.message


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs a C compiler on Linux"
)
@pytest.mark.parametrize("where", ["open", "read", "nowhere"])
def test_a_drive_that_stalls(tmp_path: Path, where: str) -> None:
    """`inspect` ends with exit code 3 long before the drive answers; a healthy one is read."""
    library = tmp_path / "stalled.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, DRIVE, "-ldl"], check=True)
    model = tmp_path / "far-away.gguf"
    model.write_bytes(small_llama())
    environment = dict(
        os.environ, LD_PRELOAD=str(library), STALLED=model.name, STALL_AT=where,
        STALL_S=str(STALL_S), PYTHONPATH=str(REPOSITORY), RIGTUNE_HOME=str(tmp_path),
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", INSPECT, str(model), "60" if where == "nowhere" else "1"],
        env=environment,
        capture_output=True,
        check=False,
    )
    document = json.loads(done.stdout)
    if where == "nowhere":
        assert (done.returncode, document["arch"]) == (0, "llama")
    else:
        assert (done.returncode, document["error"]["code"]) == (3, "model_stalled")
