"""Ctrl+C in the terminal and a polite kill close the window in order."""

import signal
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot

READ_SIZE = 64


class Interrupts(QObject):
    """Brings POSIX signals into Qt's event loop, which Python cannot interrupt by itself.

    Signals:
        interrupted: The process was asked to end.
    """

    interrupted = Signal()

    def __init__(self, parent: QObject) -> None:
        """Take over SIGINT and SIGTERM; call on the main thread."""
        super().__init__(parent)
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        # Python writes a byte here when a signal arrives; that wakes the loop.
        signal.set_wakeup_fd(self._writer.fileno())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _do_nothing)
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_activated)

    def close(self) -> None:
        """Give the signals back."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._reader.close()
        self._writer.close()

    @Slot()
    def _on_activated(self) -> None:
        self._reader.recv(READ_SIZE)
        self.interrupted.emit()


def _do_nothing(_number: int, _frame: object) -> None:
    """Keep Python's own handling away; the byte on the socket is what counts."""
