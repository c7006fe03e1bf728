"""Fuzzes the GGUF reader, guided by coverage (atheris): nothing but our own error may come out.

    python benchmarks/gguf_fuzz.py [--seconds S | --runs N]

Ends with exit code 0 after S seconds (default 60) or N executions; a foreign exception, an input
that takes longer than 5 s, or memory above 512 MiB ends it with the input written to a file.
libFuzzer prints the figures: executions, new paths, slowest input, peak memory. The tools are
locked in ``packaging/requirements/fuzz.txt`` (Linux).
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["app.gguf"]):
    from app.gguf import read_model

from app.domain.errors import EnvironmentProblem  # noqa: E402 - after what is instrumented
from tests.fakes.gguf_bytes import I32, STRING, U32, array, pair, small_llama  # noqa: E402

SEEDS = (
    small_llama(),
    small_llama([array("llama.attention.head_count_kv", I32, [1])]),
    small_llama([array("tokenizer.ggml.tokens", STRING, ["<s>", "a"]), pair("split.no", U32, 0)]),
    small_llama([pair("mamba.ssm.conv_kernel", U32, 4)], arch="mamba"),
    small_llama([pair("qwen3next.ssm.group_count", U32, 2)], arch="qwen3next"),
)
SLOWEST_S = 5
MEMORY_MIB = 512
MAX_BYTES = 8192


def main() -> None:
    """Fuzz until the time or the executions are used up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, metavar="S")
    parser.add_argument("--runs", type=int, metavar="N")
    options = parser.parse_args()
    limit = f"-runs={options.runs}" if options.runs else f"-max_total_time={options.seconds}"
    # memory where there is some: the disk is not what is tested
    fast = Path("/dev/shm")  # noqa: S108 - a folder of our own in it
    with tempfile.TemporaryDirectory(dir=fast if fast.is_dir() else None) as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for index, seed in enumerate(SEEDS):
            (corpus / str(index)).write_bytes(seed)
        model = Path(folder) / "model.gguf"

        def read(content: bytes) -> None:
            model.write_bytes(content)
            with contextlib.suppress(EnvironmentProblem):
                read_model(model)

        flags = [
            limit, f"-timeout={SLOWEST_S}", f"-rss_limit_mb={MEMORY_MIB}", f"-max_len={MAX_BYTES}",
            "-print_final_stats=1", "-verbosity=1",
        ]  # fmt: skip
        atheris.Setup([sys.argv[0], *flags, str(corpus)], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
