"""What of the engine's log is kept."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine

REPOSITORY = Path(__file__).resolve().parents[3]
WARNING = "resolve: Flash Attention not supported, set to disabled"
# the callback is called as the engine calls it, in a process of its own
SCRIPT = """
import json, sys
from app.worker.enginelog import EngineLog
class Channel:
    def send(self, message): pass
log = EngineLog(Channel())
log.begin()
receive = log._on_log
receive(3, sys.argv[1].encode() + b"\\n", None)
for i in range(1000):
    receive(1, b"graph: input tensor 'mask'", None)
    receive(5, b" is used by node %d\\n" % i, None)
receive(2, b"load_tensors: a line in", None)
receive(5, b" two parts\\n", None)
print(json.dumps([log.has(sys.argv[1]), log.errors(), log.texts()]))
"""


def test_a_thousand_details_push_no_warning_out() -> None:
    """A large context's debug lines are not kept, so that the lines that matter still are."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, WARNING],
        cwd=REPOSITORY,
        check=True,
        stdout=subprocess.PIPE,
    )
    has, errors, texts = json.loads(done.stdout)
    assert has
    assert errors == [WARNING]
    assert texts == [WARNING, "load_tensors: a line in two parts"]
