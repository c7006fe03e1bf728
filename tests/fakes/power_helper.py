"""Runs the helper's program against a fake sysfs: ``python power_helper.py ROOT JOURNAL [fast]``.

The real entry point names the real machine and runs only as installed; this one never can.
"""

import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.power.helper import guard
from app.power.helper.gpu import Gpu
from app.power.helper.journal import Journal
from app.power.helper.serve import Helper, boot_id, clock_s, serve
from app.power.helper.sysfs import SysfsGpu
from app.power.protocol import Message, encode


def main(root: Path, journal: Path) -> int:
    """Serve on standard input and output."""
    if root.resolve() == Path("/"):
        return 3

    def send(message: Message) -> None:
        sys.stdout.buffer.write(encode(message))
        sys.stdout.buffer.flush()

    def open_gpu(pci_id: str) -> Gpu:
        return SysfsGpu(root, pci_id)

    helper = Helper(Journal(journal), open_gpu, boot_id(root), send, clock_s)
    return 0 if serve(helper, io.FileIO(0, closefd=False)) != "error" else 1


if __name__ == "__main__":
    if sys.argv[3:] == ["fast"]:
        setattr(guard, "SET_INTERVAL_S", 0.0)  # noqa: B010 - not a name it exports; for tests whose clock is turned by hand
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
