"""The measured process of ``benchmarks/window.py``: opens the window and prints its figures.

Its argument is the time at which it was started, seconds since the epoch.
"""

import json
import sys
import time
from collections.abc import Callable

from views.__main__ import build  # first, so that nothing is loaded that the program would not load

IDLE_S = 5.0
SETTLE_S = 2.0
MAX_WAIT_S = 30.0


def main() -> int:
    """Measure, print one line of JSON."""
    begin_s = float(sys.argv[1])
    app, window = build(["rigtune"])
    window.show()
    window.start()
    app.processEvents()
    figures = {"shown_s": time.time() - begin_s, "shown_cpu_s": time.process_time()}
    wait_until(lambda: window.is_ready and not window.jobs.running(), "the machine and the pages")
    figures["complete_s"] = time.time() - begin_s
    figures["rss_mib"] = rss_mib()
    window.open_page("dashboard")  # a fresh home shows the introduction first
    run_loop(SETTLE_S)
    figures["visible_pct"] = idle_pct()
    window.open_page("advice")
    run_loop(SETTLE_S)
    figures["hidden_pct"] = idle_pct()
    window.finish()
    wait_until(lambda: not window.isVisible(), "the window to close")
    print(json.dumps(figures))
    return 0


def idle_pct() -> float:
    """Return the CPU time of this process while nothing is done, in per cent of one core."""
    used_s, begin_s = time.process_time(), time.perf_counter()
    run_loop(IDLE_S)
    return 100 * (time.process_time() - used_s) / (time.perf_counter() - begin_s)


def run_loop(seconds: float) -> None:
    """Let Qt's own loop run: polling would be measured, too."""
    from PySide6.QtCore import QEventLoop, QTimer  # noqa: PLC0415, TID251 - measures the window

    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


def wait_until(is_done: Callable[[], bool], what: str) -> None:
    """Run Qt's loop until ``is_done``; ends the program when ``what`` does not come."""
    end_s = time.monotonic() + MAX_WAIT_S
    while not is_done():
        if time.monotonic() > end_s:
            sys.exit(f"waited {MAX_WAIT_S:.0f} s for {what}")
        run_loop(0.01)


def rss_mib() -> float:
    """Return the resident memory of this process, MiB."""
    import psutil  # noqa: PLC0415 - the program loads it later, on a thread

    return float(psutil.Process().memory_info().rss) / (1 << 20)


if __name__ == "__main__":
    raise SystemExit(main())
