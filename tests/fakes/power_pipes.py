"""The helper's program on Windows with a made-up card: ``python power_pipes.py PIPE JOURNAL``.

The real entry point names the real machine and runs only as installed; this one never can.
"""

import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.power.helper.gpu import Gpu
from app.power.helper.journal import Journal
from app.power.helper.nvidia import NvidiaGpu
from app.power.helper.serve import Helper, clock_s, serve
from app.power.protocol import Message, encode
from tests.fakes.nvml_power import FakeNvml


def main(pipe: str, journal: Path) -> int:
    """Serve over the two pipes that RigTune made."""
    source, sink = io.FileIO(pipe + "-requests", "r"), io.FileIO(pipe + "-replies", "w")
    nvml = FakeNvml()

    def send(message: Message) -> None:
        sink.write(encode(message))

    def open_gpu(pci_id: str) -> Gpu:
        return NvidiaGpu(None, pci_id, nvml)

    helper = Helper(Journal(journal), open_gpu, "", send, clock_s)
    return 0 if serve(helper, source) != "error" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
