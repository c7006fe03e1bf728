"""Time and memory of reading a model's header.

usage: gguf_read.py [MODEL.gguf]…      without arguments: the demo model

Goals: ≤ 30 ms per 256k words and ≤ 32 MiB extra for real models; ≤ 250 ms and ≤ 64 MiB for the
hostile files made here. Each file is read in a process of its own, so that its peak memory is
its own; the extra is the peak above the same process after imports. On a busy machine only the
CPU time says something.
"""

import json
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

REPETITIONS = 15
STRING, ARRAY, U8 = 8, 9, 0


def main() -> None:
    """Print one line per file."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(_measure(Path(sys.argv[2]))))
        return
    models = [Path(argument) for argument in sys.argv[1:]] or [_demo_model()]
    heads = ("first ms", "median ms", "CPU ms", "extra MiB")
    print(f"{'file':44} " + " ".join(f"{head:>10}" for head in heads) + "  result")
    for model in models:
        _report(model)
    with tempfile.TemporaryDirectory() as folder:
        for path in _hostile_files(Path(folder)):
            _report(path)


def _report(path: Path) -> None:
    command = [sys.executable, __file__, "--measure", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    print(
        f"{path.name:44} {found['first_ms']:10.1f} {found['median_ms']:10.1f} "
        f"{found['cpu_ms']:10.1f} {found['extra_mib']:10.1f}  {found['result']}"
    )


def _measure(path: Path) -> dict[str, object]:
    from app.domain.errors import EnvironmentProblem  # noqa: PLC0415 - before the baseline
    from app.gguf import read_model  # noqa: PLC0415

    baseline = _peak_bytes()
    times_ms, cpu_ms = [], []
    result = ""
    for _ in range(REPETITIONS):
        start, cpu_start = time.perf_counter_ns(), time.process_time_ns()
        try:
            spec = read_model(path)
            result = f"{spec.n_vocab} words, {len(spec.tensors)} tensors"
        except EnvironmentProblem as problem:
            result = problem.info.code
        times_ms.append((time.perf_counter_ns() - start) / 1e6)
        cpu_ms.append((time.process_time_ns() - cpu_start) / 1e6)
    return {
        "first_ms": times_ms[0],
        "median_ms": statistics.median(times_ms),
        "cpu_ms": statistics.median(cpu_ms),
        "extra_mib": (_peak_bytes() - baseline) / 2**20,
        "result": result,
    }


def _peak_bytes() -> int:
    """Peak resident memory of this process (not ``ru_maxrss``, which a child inherits)."""
    if sys.platform == "win32":
        import psutil  # noqa: PLC0415

        return int(psutil.Process().memory_info().peak_wset)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def _demo_model() -> Path:
    from app.library import demo_model  # noqa: PLC0415

    return demo_model()


def _hostile_files(folder: Path) -> list[Path]:
    """Valid as far as possible, and as expensive as the limits allow."""
    words = struct.pack("<IIQ", ARRAY, STRING, 2_000_000) + bytes(8 * 2_000_000)
    long_words = struct.pack("<IIQ", ARRAY, STRING, 500_000)
    long_words += (struct.pack("<Q", 92) + bytes(92)) * 500_000
    contents = {
        "2,000,000 empty words": _file([_string("w") + words]),
        "48 MB of words": _file([_string("w") + long_words]),
        "16,384 pairs": _file(
            [_string(f"key.{i:05}") + struct.pack("<IB", U8, 1) for i in range(16_384)]
        ),
        "32,768 tensors": _file([], 32_768),
        "2^63 tensors": b"GGUF" + struct.pack("<IQQ", 3, 1 << 63, 0) + bytes(4096),
    }
    paths = []
    for name, content in contents.items():
        path = folder / name
        path.write_bytes(content)
        paths.append(path)
    return paths


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _file(pairs: list[bytes], n_tensors: int = 0) -> bytes:
    arch = _string("general.architecture") + struct.pack("<I", STRING) + _string("hostile")
    body = b"GGUF" + struct.pack("<IQQ", 3, n_tensors, len(pairs[:16_383]) + 1) + arch
    body += b"".join(pairs[:16_383])
    for index in range(n_tensors):
        body += _string(f"blk.{index % 400}.t{index}") + struct.pack("<IQIQ", 1, 8, 0, index * 32)
    return body + (bytes(-len(body) % 32 + n_tensors * 32) if n_tensors else b"")


if __name__ == "__main__":
    main()
