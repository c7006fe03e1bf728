"""Holds device memory with plain allocations, so that another program finds only so much free.

The card is the first, or the one whose index is the argument.
Reads lines from stdin: a number of bytes that shall stay free, or ``max`` for nothing left. Answers
each with what is free then. Ends, and gives everything back, with its stdin.
"""

import ctypes
import sys

MIB = 1 << 20
CHUNKS = (1 << 33, 1 << 30, 128 * MIB, 16 * MIB, 2 * MIB)


def main() -> None:
    """Serve requests until stdin ends."""
    runtime = ctypes.CDLL("libcudart.so.13")
    if runtime.cudaSetDevice(int(sys.argv[1]) if len(sys.argv) > 1 else 0):
        sys.exit("there is no such device")
    runtime.cudaMalloc.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t)
    for line in sys.stdin:
        wanted = 0 if line.strip() == "max" else int(line)
        print(hold(runtime, wanted), flush=True)


def hold(runtime: ctypes.CDLL, wanted: int) -> int:
    """Allocate until at most ``wanted`` bytes (and up to 2 MiB more) are free."""
    for chunk in CHUNKS:
        while free_bytes(runtime) - chunk >= wanted:
            if runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), chunk):
                runtime.cudaGetLastError()
                break
    return free_bytes(runtime)


def free_bytes(runtime: ctypes.CDLL) -> int:
    """Return the free bytes of the device, as the driver says."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    problem = runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    if problem:
        sys.exit(f"cudaMemGetInfo: error {problem}")
    return free.value


if __name__ == "__main__":
    main()
