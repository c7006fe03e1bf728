"""Decode speed of a chat against a bare loop with the same sampler chain.

usage: chat_overhead.py [--pairs N] [--tokens N] [--temperature T] [MODEL.gguf]
       without a model: the demo model

Goal: ≥ 99 % of the bare loop (≥ 98 % on a card above 200 tok/s). Both run in this process on one
context, in turns, each from the same filled cache, and decode the same number of tokens. Ours is
what the worker does per token: sampling, text, pieces, and a line of the protocol to nowhere. Bare
is sampling and decoding only, with every Python object made beforehand. Printed are the ratios of
the pairs, bare time to ours, by the clock and by CPU time (which other programs disturb less).
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app.domain.settings import LoadMode, Settings  # noqa: E402 - after the path
from app.library import demo_model  # noqa: E402
from app.sweep.stats import estimate  # noqa: E402
from app.worker.cancel import CancelFlag  # noqa: E402
from app.worker.channel import Channel  # noqa: E402
from app.worker.devices import load_backends  # noqa: E402
from app.worker.engine import Context, Engine  # noqa: E402
from app.worker.enginelog import EngineLog  # noqa: E402
from app.worker.generate import Generator  # noqa: E402
from app.worker.native import llama  # noqa: E402
from app.worker.prompt import tokenize  # noqa: E402
from app.worker.protocol import ChatMessage, Generate, GenerateFinished, Sampling  # noqa: E402
from app.worker.sampling import Sampler  # noqa: E402

PROMPT = "Once upon a time, in a small town by the sea, there lived an old clockmaker who"
GOAL = 0.99

Seconds = tuple[float, float]


def main() -> None:
    """Print the ratio of each pair and its median."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("model", nargs="?", default=None)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--n-gpu-layers", type=int, default=0)
    options = parser.parse_args()
    model = options.model or demo_model()
    settings = Settings(
        n_gpu_layers=options.n_gpu_layers, n_ctx=1024, n_threads=1, load_mode=LoadMode.NONE
    )
    sampling = Sampling(temperature=options.temperature, seed=1)
    cancel = CancelFlag()
    channel = Channel(os.open(os.devnull, os.O_WRONLY), cancel)
    load_backends(None)
    engine = Engine(EngineLog(channel), cancel)
    engine.load(str(model), settings, lambda _: None)
    context = engine.open_context(engine.loaded(), settings)
    generator = Generator(engine, channel)

    def ours() -> Seconds:
        return _ours(generator, settings, sampling, options.tokens)

    def bare() -> Seconds:
        return _bare(context, sampling, options.tokens)

    _report(ours, bare, options.pairs, options.tokens)
    sys.stdout.flush()
    os._exit(0)  # drivers may hang at an orderly end


def _report(
    ours: Callable[[], Seconds], bare: Callable[[], Seconds], n_pairs: int, n_tok: int
) -> None:
    ours(), bare()  # first use of both shapes
    ratios: dict[str, list[float]] = {"clock": [], "CPU": []}
    print(f"{'pair':>4} {'bare ms/tok':>12} {'ours ms/tok':>12} {'clock':>7} {'CPU':>7}")
    for pair in range(n_pairs):
        # which one goes first changes, so that a drift of the machine hits both
        first, second = (ours, bare) if pair % 2 else (bare, ours)
        one, two = first(), second()
        mine, other = (one, two) if pair % 2 else (two, one)
        ratios["clock"].append(other[0] / mine[0])
        ratios["CPU"].append(other[1] / mine[1])
        print(
            f"{pair:4} {1e3 * other[0] / n_tok:12.3f} {1e3 * mine[0] / n_tok:12.3f} "
            f"{ratios['clock'][-1]:7.4f} {ratios['CPU'][-1]:7.4f}"
        )
    for name, values in ratios.items():
        found = estimate(values)
        verdict = "reached" if found.median >= GOAL else "missed"
        print(
            f"by {name}: {found.median:.4f} of the bare loop "
            f"({found.low:.4f}–{found.high:.4f}); goal {GOAL} {verdict}"
        )


def _ours(generator: Generator, settings: Settings, sampling: Sampling, n_tok: int) -> Seconds:
    """Decode by the chat's own loop; only the steps after the first token are timed."""
    request = Generate(
        settings=settings,
        messages=(ChatMessage(role="user", content=PROMPT),),
        max_tokens=n_tok + 1,
        sampling=sampling,
        template="text",
    )
    timer = _Timer(generator)
    finished = timer.run(request)
    assert finished.n_gen == n_tok + 1, "the model ended by itself: use another seed"
    return timer.seconds


class _Timer:
    """Notes clock and CPU at the first and the last token of an answer."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self.seconds: Seconds = (0.0, 0.0)

    def run(self, request: Generate) -> GenerateFinished:
        """Answer ``request``; ``seconds`` is then the time of its decoding."""
        from app.worker import generate  # noqa: PLC0415 - only its inner class is watched

        marks: list[Seconds] = []
        plain = generate._Answer.generated  # noqa: SLF001 - a mark at no cost per token

        def noting(answer: object) -> None:
            plain(answer)  # type: ignore[arg-type]
            if answer.n_gen in (1, request.max_tokens):  # type: ignore[attr-defined]
                marks.append((time.perf_counter(), time.process_time()))

        generate._Answer.generated = noting  # type: ignore[method-assign, assignment] # noqa: SLF001
        try:
            finished = self._generator.run(request)
        finally:
            generate._Answer.generated = plain  # type: ignore[method-assign] # noqa: SLF001
        self.seconds = (marks[-1][0] - marks[0][0], marks[-1][1] - marks[0][1])
        return finished


def _bare(context: Context, sampling: Sampling, n_tok: int) -> Seconds:
    """Sample and decode, nothing else."""
    prompt = tokenize(context.model, PROMPT)
    llama.llama_memory_clear(context.memory, False)
    sampler = Sampler(context.model, sampling, prompt)
    chain, handle = sampler._chain, context.handle  # noqa: SLF001 - the same chain, bare
    array = (llama.llama_token * len(prompt))(*prompt)
    llama.llama_decode(handle, llama.llama_batch_get_one(array, len(prompt)))
    one = (llama.llama_token * 1)()
    batch = llama.llama_batch_get_one(one, 1)
    sample, decode = llama.llama_sampler_sample, llama.llama_decode
    one[0] = sample(chain, handle, -1)
    begin = time.perf_counter(), time.process_time()
    for _ in range(n_tok):
        decode(handle, batch)
        one[0] = sample(chain, handle, -1)
    end = time.perf_counter(), time.process_time()
    sampler.free()
    return end[0] - begin[0], end[1] - begin[1]


if __name__ == "__main__":
    main()
