"""The least a program can do around the engine: what our chat is measured against.

As a program it loads MODEL and answers JSON lines: ``generate`` decodes with a sampler chain and
nothing else (no text, no protocol), ``context`` says what one more context takes.
"""

import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_SILENT = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)


class Bare:
    """The program, seen from the measuring side."""

    def __init__(self, model: Path, n_gpu_layers: int, n_threads: int) -> None:
        """Start it and wait until the model is loaded."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(model), str(n_gpu_layers), str(n_threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID"),
        )  # fmt: skip
        self._read()

    def ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer to one question."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"what": what, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(20)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        assert self._process.stderr
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(self._process.stderr.read()[-2000:])
        return dict(json.loads(line))


def main() -> None:
    """Serve questions until stdin ends."""
    import llama_cpp as llama  # noqa: PLC0415 - only the program needs the engine
    import llama_cpp.llama_cpp as low  # noqa: PLC0415

    path, layers, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    llama.llama_log_set(_SILENT, ctypes.c_void_p(0))
    load_modules(low)
    llama.llama_backend_init()
    params = llama.llama_model_default_params()
    params.n_gpu_layers = layers
    model = llama.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        sys.exit("the model was not loaded")
    print(json.dumps({"loaded": True}), flush=True)
    contexts: dict[int, Any] = {}
    for line in sys.stdin:
        question = json.loads(line)
        if question.pop("what") == "generate":
            n_ctx = question["n_ctx"]
            if n_ctx not in contexts:
                contexts[n_ctx] = context_on(llama, model, threads, n_ctx=n_ctx, n_outputs_max=1)
            answer = generate(llama, model, contexts[n_ctx], question)
        else:
            answer = context_bytes(llama, model, threads, question)
        print(json.dumps(answer), flush=True)


def load_modules(low: Any) -> None:
    """Load backends that come as modules; a build without modules has them already."""
    beside = Path(str(low._base_path))  # noqa: SLF001 - where the binding found the engine
    for folder in (beside, beside.parents[1] / "bin"):
        if any(folder.glob("*ggml-cpu*")):
            load = low._lib.ggml_backend_load_all_from_path  # noqa: SLF001 - not bound
            load.restype, load.argtypes = None, (ctypes.c_char_p,)
            load(str(folder).encode())
            return


def context_on(llama: Any, model: Any, threads: int, **changes: int) -> Any:
    """Return a context like the ones our worker makes."""
    params = llama.llama_context_default_params()
    params.n_threads = params.n_threads_batch = threads
    params.n_batch, params.n_ubatch, params.n_seq_max = 2048, 512, 1
    params.flash_attn_type, params.no_perf = 1, True
    for name, value in changes.items():
        if value:
            setattr(params, name, value)
    context = llama.llama_init_from_model(model, params)
    if not context:
        sys.exit("no context")
    return context


def generate(llama: Any, model: Any, context: Any, question: dict[str, Any]) -> dict[str, Any]:
    """Decode ``n_gen`` tokens after the prompt; the first token is not timed."""
    chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
    if question["temperature"] <= 0:
        steps = [llama.llama_sampler_init_greedy()]
    else:
        steps = [
            llama.llama_sampler_init_top_k(40),
            llama.llama_sampler_init_top_p(0.95, 1),
            llama.llama_sampler_init_min_p(0.05, 1),
            llama.llama_sampler_init_temp(question["temperature"]),
            llama.llama_sampler_init_dist(question["seed"]),
        ]
    for step in steps:
        llama.llama_sampler_chain_add(chain, step)
    llama.llama_memory_clear(llama.llama_get_memory(context), True)
    prompt = tokens_of(llama, model, question["prompt"])
    first = (ctypes.c_int32 * len(prompt))(*prompt)
    llama.llama_decode(context, llama.llama_batch_get_one(first, len(prompt)))
    one = (ctypes.c_int32 * 1)()
    batch = llama.llama_batch_get_one(one, 1)
    one[0] = llama.llama_sampler_sample(chain, context, -1)
    vocab, done = llama.llama_model_get_vocab(model), 1
    start = time.perf_counter_ns()
    while done < question["n_gen"] and not llama.llama_vocab_is_eog(vocab, one[0]):
        llama.llama_decode(context, batch)
        one[0] = llama.llama_sampler_sample(chain, context, -1)
        done += 1
    ns = time.perf_counter_ns() - start
    llama.llama_sampler_free(chain)
    return {"n_prompt": len(prompt), "n_gen": done, "decode_tok_s": (done - 1) * 1e9 / max(ns, 1)}


def tokens_of(llama: Any, model: Any, text: str) -> list[int]:
    """Return the tokens of ``text``."""
    vocab, data = llama.llama_model_get_vocab(model), text.encode()
    room = (ctypes.c_int32 * (len(data) + 8))()
    count = llama.llama_tokenize(vocab, data, len(data), room, len(room), True, True)
    return list(room[:count])


def context_bytes(llama: Any, model: Any, threads: int, changes: dict[str, int]) -> dict[str, Any]:
    """Return the device memory one more context takes, by the card's own figure."""
    import pynvml  # noqa: PLC0415 - only this question needs it

    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)

    def used() -> int:
        return int(pynvml.nvmlDeviceGetMemoryInfo(card, version=pynvml.nvmlMemory_v2).used)

    before = used()
    context = context_on(llama, model, threads, **changes)
    after = used()
    llama.llama_free(context)
    return {**changes, "bytes": after - before}


if __name__ == "__main__":
    main()
