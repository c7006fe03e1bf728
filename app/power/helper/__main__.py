"""Entry point of the installed helper: the only place that names the real machine."""

import io
import os
import re
import sys
from pathlib import Path

from app.power.helper.gpu import DriverRefused, Gpu, device_folder, read_text
from app.power.helper.journal import Journal, JournalProblem
from app.power.helper.nvidia import NVIDIA, NvidiaGpu
from app.power.helper.serve import Helper, boot_id, clock_s, serve
from app.power.helper.sysfs import SysfsGpu
from app.power.protocol import PCI_ID, Bye, Message, encode

ROOT = Path("/")
JOURNAL = Path("/var/lib/rigtune-power")
PIPE_NAME = re.compile(r"\\\\\.\\pipe\\rigtune-power-[0-9a-f]{32}\Z")
PROGRAM = Path("/usr/libexec/rigtune-power/rigtune-power-helper")


def open_gpu(pci_id: str) -> Gpu:
    """Open a GPU of this machine by its PCI address."""
    folder = None if sys.platform == "win32" else device_folder(ROOT, pci_id)
    if folder is None or read_text(folder / "vendor") == NVIDIA:
        if not PCI_ID.match(pci_id):
            raise DriverRefused("bad_pci_id", "not a PCI address")
        import pynvml

        return NvidiaGpu(folder, pci_id, pynvml)
    return SysfsGpu(ROOT, pci_id)


def main(arguments: list[str]) -> int:
    """Serve; only as the installed program, only with an administrator's rights."""
    if sys.platform == "win32":
        return _serve_windows(arguments)
    source, sink = io.FileIO(0, closefd=False), io.FileIO(1, "w", closefd=False)
    if arguments or Path(sys.executable) != PROGRAM or os.geteuid() != 0:
        sink.write(encode(Bye(reason="not_allowed")))
        return 2
    os.umask(0o077)
    os.chdir("/")
    return _serve(source, sink, JOURNAL)


def _serve_windows(arguments: list[str]) -> int:
    """Talk over the pipes that RigTune made."""
    program = Path(sys.executable)
    if len(arguments) != 1 or not PIPE_NAME.match(arguments[0]) or program.suffix != ".exe":
        return 2
    source = io.FileIO(arguments[0] + "-requests", "r")
    sink = io.FileIO(arguments[0] + "-replies", "w")
    # Beside the program, where only administrators may write.
    return _serve(source, sink, program.parent / "journal")


def _serve(source: io.FileIO, sink: io.FileIO, journal: Path) -> int:
    def send(message: Message) -> None:
        sink.write(encode(message))

    try:
        kept = Journal(journal)
    except JournalProblem:
        send(Bye(reason="not_allowed"))
        return 2
    helper = Helper(kept, open_gpu, boot_id(ROOT), send, clock_s)
    return 0 if serve(helper, source) != "error" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
