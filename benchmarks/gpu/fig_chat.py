"""What our chat costs on a fast card: streamed text against a bare loop, in turns."""

import time
from statistics import median
from typing import TYPE_CHECKING, Any

from bare import Bare
from lab import Lab

from app.domain.events import GenerationFinished, TokenGenerated
from app.rig.chat_engine import ChatEngine
from app.rig.process import Launch
from app.worker.protocol import ChatMessage, Sampling

if TYPE_CHECKING:
    from collections.abc import Callable

PROMPT = "Write a long story about a lighthouse keeper who finds a map. " * 8
_N_CTX = 2048


def chat(lab: Lab) -> None:
    """Ours as the user sees it (text streamed through the pipe) beside the bare loop."""
    n_gen, pairs = lab.pick(384, 48), lab.pick(8, 2)
    layers = lab.pick(lab.spec("a").max_gpu_layers, 0)
    devices = lab.pick((lab.device,), ())
    settings = lab.settings(layers, n_ctx=_N_CTX, devices=devices)
    engine, bare = ChatEngine(Launch()), Bare(lab.path("a"), layers, lab.threads)
    try:
        for _ in engine.start(lab.spec("a"), settings):
            pass
        for name, temperature in (("sampled", 0.8), ("greedy", 0.0)):
            rows: list[dict[str, Any]] = []
            ours(engine, temperature, 8)
            theirs(bare, temperature, 8)
            for number in range(pairs):
                calls: list[tuple[str, Callable[[], dict[str, Any]]]] = [
                    ("ours", lambda t=temperature: ours(engine, t, n_gen)),  # type: ignore[misc]
                    ("bare", lambda t=temperature: theirs(bare, t, n_gen)),  # type: ignore[misc]
                ]
                rows.append({who: f() for who, f in (calls if number % 2 else calls[::-1])})
            lab.result.put(name, {"pairs": rows, "ratio": ratio(rows)})
    finally:
        bare.close()
        engine.close()


def ours(engine: ChatEngine, temperature: float, n_gen: int) -> dict[str, Any]:
    """Return our speed as the worker counts it, and as it arrives."""
    sampling = Sampling(temperature=temperature, seed=1)
    arrivals: list[int] = []
    end: GenerationFinished | None = None
    for event in engine.generate((ChatMessage(role="user", content=PROMPT),), sampling, n_gen):
        if isinstance(event, TokenGenerated) and event.n_tok:
            arrivals.append(time.perf_counter_ns())
        elif isinstance(event, GenerationFinished):
            end = event
    assert end is not None
    seen_ns = arrivals[-1] - arrivals[0] if arrivals else 0
    return {
        "reason": end.reason,
        "error": end.error,
        "n_gen": end.n_gen,
        "n_prompt": end.n_prompt,
        "ttft_ms": end.ttft_ms,
        "decode_tok_s": end.decode_tok_s,
        "arriving_tok_s": (end.n_gen - 1) * 1e9 / seen_ns if seen_ns else None,
    }


def theirs(bare: Bare, temperature: float, n_gen: int) -> dict[str, Any]:
    """Return the bare loop's speed."""
    return bare.ask(
        "generate", prompt=PROMPT, n_gen=n_gen, temperature=temperature, seed=1, n_ctx=_N_CTX
    )


def ratio(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return ours over bare: per pair and the median, both ways of counting ours."""
    found: dict[str, Any] = {}
    for field in ("decode_tok_s", "arriving_tok_s"):
        each = [
            r["ours"][field] / r["bare"]["decode_tok_s"]
            for r in rows
            if r["ours"][field] and r["bare"]["decode_tok_s"]
        ]
        if each:
            found[field] = {"each": [round(r, 4) for r in each], "median": round(median(each), 4)}
    return found
