"""RAM read speed of this machine, five times over: how far the runs lie apart.

    python benchmarks/memory_bandwidth.py [--runs 5] [--file MODEL]

With ``--file`` the read speed of that file's disk is measured as well.
"""

import argparse
from pathlib import Path

from probes import registry
from probes.bandwidth import disk_read_mb_s, read_gb_s

GOAL_FRAC = 0.10


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--file", type=Path, help="a large file, for its disk")
    args = parser.parse_args()
    host = registry.detect().host.identify()
    n_threads = host.cores_physical or 1
    runs = [read_gb_s(n_threads, host.l3_bytes) or 0.0 for _ in range(args.runs)]
    spread = (max(runs) - min(runs)) / max(runs)
    print(f"{n_threads} threads, GB/s: {', '.join(f'{run:.1f}' for run in runs)}")
    print(f"spread {100 * spread:.1f} %, goal <= {100 * GOAL_FRAC:.0f} %")
    if args.file is not None:
        print(f"disk: {disk_read_mb_s(args.file) or 0:.0f} MB/s")
    if spread > GOAL_FRAC:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
