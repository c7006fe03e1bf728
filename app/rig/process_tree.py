"""Ends a process and everything it started.

POSIX: the worker leads a session of its own, so one signal reaches the whole group. Windows:
a Job Object that kills its members when it closes, also when this process dies.
"""

import contextlib
import os
import signal
import subprocess
import sys

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _KILL_ON_JOB_CLOSE = 0x2000
    _EXTENDED_LIMITS = 9
    _EXTENDED_LIMITS_BYTES = 144
    _LIMIT_FLAGS_OFFSET = 16

    CREATION_FLAGS = subprocess.CREATE_NO_WINDOW

    class ProcessTree:
        """A job that holds the worker and its children."""

        def __init__(self, process: subprocess.Popen[bytes]) -> None:
            """Put ``process`` into a new job."""
            self._process = process
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.CreateJobObjectW.restype = wintypes.HANDLE
            self._job = wintypes.HANDLE(self._kernel.CreateJobObjectW(None, None))
            limits = ctypes.create_string_buffer(_EXTENDED_LIMITS_BYTES)
            flags = wintypes.DWORD.from_buffer(limits, _LIMIT_FLAGS_OFFSET)
            flags.value = _KILL_ON_JOB_CLOSE
            self._kernel.SetInformationJobObject(
                self._job, _EXTENDED_LIMITS, limits, _EXTENDED_LIMITS_BYTES
            )
            # subprocess offers no public way to the handle
            handle = wintypes.HANDLE(int(process._handle))  # noqa: SLF001
            self._kernel.AssignProcessToJobObject(self._job, handle)

        def terminate(self) -> None:
            """Ask the worker to end (Windows knows no polite way for it)."""
            self._process.terminate()

        def kill(self) -> None:
            """End the worker and everything it started."""
            self._kernel.TerminateJobObject(self._job, 1)
            self._process.kill()  # in case that a job around us let no other be made

        def close(self) -> None:
            """Give the job back once the worker is gone."""
            self._kernel.CloseHandle(self._job)

else:
    CREATION_FLAGS = 0

    class ProcessTree:
        """The process group that the worker leads."""

        def __init__(self, process: subprocess.Popen[bytes]) -> None:
            """Remember the group of ``process``."""
            self._pid = process.pid

        def terminate(self) -> None:
            """Ask the worker and everything it started to end."""
            self._signal(signal.SIGTERM)

        def kill(self) -> None:
            """End the worker and everything it started."""
            self._signal(signal.SIGKILL)

        def close(self) -> None:
            """Nothing is held."""

        def _signal(self, number: int) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, number)
