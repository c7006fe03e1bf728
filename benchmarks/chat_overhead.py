"""Decode speed of a chat against a bare loop with the same sampler chain.

usage: chat_overhead.py [--rounds N] [--block N] [--temperature T] [--n-gpu-layers N] [MODEL.gguf]
       without a model: the demo model

Goal: ≥ 99 % of the bare loop (≥ 98 % on a card above 200 tok/s). One answer is decoded in blocks of
a few tokens, in turns by three loops that share context, cache and sampler chain: bare, ours and
bare once more. Bare samples and decodes, with every Python object made beforehand; ours is what the
worker does per token, protocol lines to a reading process included. The engine runs on one thread,
so that nothing waits for another one. Printed are

- ratios: the two bare blocks' mean time over ours, per round, by the clock and by this thread's CPU
  time; beside it the control, one bare block over the other. Median, and its 95 % interval from
  order statistics. A machine that other programs use scatters the rounds.
- the account: time that each loop spends outside ``llama_decode`` and ``llama_sampler_sample``, per
  token. What bare spends there is what the watching itself costs, so the difference is ours; as a
  share of a token it does not depend on what else the machine does.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402 - after the path

from app.domain.pacing import Pace  # noqa: E402
from app.domain.settings import LoadMode, Settings  # noqa: E402
from app.library import demo_model  # noqa: E402
from app.worker import generate  # noqa: E402
from app.worker.cancel import CancelFlag  # noqa: E402
from app.worker.channel import Channel  # noqa: E402
from app.worker.devices import load_backends  # noqa: E402
from app.worker.engine import Engine  # noqa: E402
from app.worker.enginelog import EngineLog  # noqa: E402
from app.worker.native import llama  # noqa: E402
from app.worker.prompt import build_prompt  # noqa: E402
from app.worker.protocol import ChatMessage, Generate, Sampling  # noqa: E402
from app.worker.sampling import Sampler  # noqa: E402
from app.worker.writer import Writer  # noqa: E402

PROMPT = "Once upon a time, in a small town by the sea, there lived an old clockmaker who"
GOAL = 0.99
N_CTX = 1024
READER = "import os\nwhile os.read(0, 65536): pass"


class Spent(NamedTuple):
    """Seconds by the clock and of this thread's CPU."""

    clock: float
    cpu: float

    @classmethod
    def now(cls) -> "Spent":
        """Return both clocks."""
        return cls(time.perf_counter(), time.thread_time())

    def since(self, begin: "Spent") -> "Spent":
        """Return what passed."""
        return Spent(self.clock - begin.clock, self.cpu - begin.cpu)

    def each(self, n_tok: int) -> "Spent":
        """Return the share of one of ``n_tok`` tokens."""
        return Spent(self.clock / n_tok, self.cpu / n_tok)


def main() -> None:
    """Print both ratios, their control, and the account."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("model", nargs="?", default=None)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--block", type=int, default=16)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--n-gpu-layers", type=int, default=0)
    options = parser.parse_args()
    reader = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE)
    assert reader.stdin
    race = Race(
        str(options.model or demo_model()),
        Settings(
            n_gpu_layers=options.n_gpu_layers, n_ctx=N_CTX, n_threads=1, load_mode=LoadMode.NONE
        ),
        Sampling(temperature=options.temperature, seed=1),
        reader.stdin.fileno(),
    )
    loads = os.getloadavg() if hasattr(os, "getloadavg") else ()
    print(f"load of the machine: {' '.join(f'{x:.2f}' for x in loads) or 'unknown'}")
    in_turns(race, options.rounds, options.block)
    account(race, max(1, options.rounds // 4), options.block)
    sys.stdout.flush()
    reader.stdin.close()
    reader.wait(10)
    os._exit(0)  # drivers may hang at an orderly end


class Race:
    """One answer that both loops write, a block each in turns."""

    def __init__(self, model: str, settings: Settings, sampling: Sampling, fd: int) -> None:
        """Load the model and read the prompt; what ours says goes to ``fd``."""
        cancel = CancelFlag()
        channel = Channel(fd, cancel)
        load_backends(None)
        engine = Engine(EngineLog(channel), cancel)
        engine.load(model, settings, lambda _: None)
        messages = (ChatMessage(role="user", content=PROMPT),)
        self._request = Generate(settings=settings, messages=messages, sampling=sampling)
        self._generator = generate.Generator(engine, channel)
        self._cache = self._generator._prepare(engine.loaded(), settings)  # noqa: SLF001
        self._prompt = build_prompt(engine.loaded(), messages, "text")
        self._sampler = Sampler(engine.loaded(), sampling, self._prompt.tokens)
        self._answer = generate._Answer(0, len(self._prompt.tokens), 0)  # noqa: SLF001
        self._rhythm = generate._Rhythm(Pace(), channel, cancel)  # noqa: SLF001
        self._writer = Writer(engine.loaded(), self._prompt, (), channel.send)
        self._one = (llama.llama_token * 1)()
        self._batch = llama.llama_batch_get_one(self._one, 1)

    def make_room(self, n_tok: int) -> None:
        """Begin after the prompt again when the context would not hold ``n_tok`` more."""
        tokens = self._prompt.tokens
        if not self._cache.tokens or len(self._cache.tokens) + n_tok > N_CTX:
            self._cache.clear()
            self._cache.prefill(tokens, len(tokens), lambda *_: len(tokens))

    def ours(self, n_tok: int) -> Spent | None:
        """Write ``n_tok`` tokens by the chat's own loop; ``None`` = the model ended earlier."""
        limit = self._answer.n_gen + n_tok
        request = msgspec.structs.replace(self._request, max_tokens=limit)
        answer, sampler = self._answer, self._sampler
        begin = Spent.now()
        reason = self._generator._decode(  # noqa: SLF001 - the loop itself
            self._cache, request, answer, sampler, self._rhythm, self._writer
        )
        spent = Spent.now().since(begin)
        return spent.each(n_tok) if reason == "length" else None

    def bare(self, n_tok: int) -> Spent:
        """Sample ``n_tok`` tokens and decode all but the last, as ours does."""
        handle, one, batch = self._cache.context.handle, self._one, self._batch
        chain = self._sampler._chain  # noqa: SLF001 - the same chain
        sample, decode = llama.llama_sampler_sample, llama.llama_decode
        written = [0] * n_tok
        begin = Spent.now()
        written[0] = one[0] = sample(chain, handle, -1)
        for index in range(1, n_tok):
            decode(handle, batch)
            written[index] = one[0] = sample(chain, handle, -1)
        spent = Spent.now().since(begin)
        self._cache.tokens += written[:-1]
        return spent.each(n_tok)


def in_turns(race: Race, n_rounds: int, block: int) -> None:
    """Print the ratios of blocks next to each other."""
    ours: list[Spent] = []
    first: list[Spent] = []
    second: list[Spent] = []
    order = random.Random(1)  # noqa: S311 - which loop comes first
    for number in range(n_rounds + 2):
        race.make_room(3 * block)
        found: dict[str, Spent | None] = {}
        for who in order.sample(("bare", "ours", "again"), 3):
            found[who] = race.ours(block) if who == "ours" else race.bare(block)
        mine, one, two = found["ours"], found["bare"], found["again"]
        if number < 2 or mine is None or one is None or two is None:
            continue  # first use of every shape, or the model ended by itself
        ours.append(mine)
        first.append(one)
        second.append(two)
    print(f"{len(ours)} rounds of 3 blocks of {block} tokens; one token, bare: ", end="")
    print(f"{1e3 * median(s.clock for s in first + second):.2f} ms")
    for name in ("clock", "cpu"):
        rows = [
            [float(getattr(spent, name)) for spent in row]
            for row in zip(ours, first, second, strict=True)
        ]
        ratios = [(a + b) / 2 / m for m, a, b in rows]
        control = [a / b for _, a, b in rows]
        verdict = "reached" if median(ratios) >= GOAL else "missed"
        print(f"by {name}: ours {interval(ratios)}, goal {GOAL} {verdict}; ", end="")
        print(f"control {interval(control)}")


def account(race: Race, n_rounds: int, block: int) -> None:
    """Print what each loop spends outside the engine, per token."""
    outside: dict[str, list[Spent]] = {"bare": [], "ours": []}
    inside: list[Spent] = []
    for number in range(n_rounds + 1):
        race.make_room(2 * block)
        for who, each in outside.items():
            with watched() as engine:
                spent = race.ours(block) if who == "ours" else race.bare(block)
            if number and spent is not None:
                each.append(spent.since(engine().each(block)))
                inside.append(engine().each(block))
    for name in ("clock", "cpu"):
        middle = {who: median(getattr(s, name) for s in all_) for who, all_ in outside.items()}
        token = median(getattr(s, name) for s in inside)
        cost = middle["ours"] - middle["bare"]
        print(
            f"account by {name}: outside the engine ours {1e6 * middle['ours']:.1f} µs, "
            f"bare {1e6 * middle['bare']:.1f} µs per token; inside {1e3 * token:.2f} ms; "
            f"cost {1e6 * cost:.1f} µs = {100 * cost / token:.3f} % of a token"
        )


@contextmanager
def watched() -> Iterator[Callable[[], Spent]]:
    """Sum up what is spent inside the engine's two calls in the block."""
    sums = [0.0, 0.0]
    names = ("llama_decode", "llama_sampler_sample")
    plain = {name: getattr(llama, name) for name in names}

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            clock, cpu = time.perf_counter(), time.thread_time()
            result = call(*arguments)
            sums[1] += time.thread_time() - cpu
            sums[0] += time.perf_counter() - clock
            return result

        return run

    for name, call in plain.items():
        setattr(llama, name, timed(call))
    try:
        yield lambda: Spent(sums[0], sums[1])
    finally:
        for name, call in plain.items():
            setattr(llama, name, call)


def interval(values: list[float]) -> str:
    """Return the median with its 95 % interval from order statistics."""
    ordered, n = sorted(values), len(values)
    half = 0.98 * math.sqrt(n)
    low, high = max(0, math.floor(n / 2 - half)), min(n - 1, math.ceil(n / 2 + half))
    return f"{median(ordered):.4f} ({ordered[low]:.4f}–{ordered[high]:.4f})"


if __name__ == "__main__":
    main()
