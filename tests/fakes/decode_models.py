"""Loads models with the real engine and decodes a few tokens; run as a child process.

usage: decode_models.py MODEL.gguf…      prints one JSON object per model
"""

import json
import sys
from typing import Any

import llama_cpp
import numpy as np

from app.worker import devices

N_TOKENS = 8


def main() -> None:
    """Decode each model named on the command line."""
    devices.load_backends(None)
    for path in sys.argv[1:]:
        print(json.dumps(_decode(path) | {"path": path}), flush=True)


def _decode(path: str) -> dict[str, Any]:
    params = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(path.encode(), params)
    if not model:
        return {"status": None, "is_finite": False}
    context_params = llama_cpp.llama_context_default_params()
    context_params.n_ctx = 256
    context_params.n_batch = context_params.n_ubatch = 64
    context_params.n_threads = context_params.n_threads_batch = 1
    context = llama_cpp.llama_init_from_model(model, context_params)
    n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    tokens = (llama_cpp.llama_token * N_TOKENS)(*range(259, 259 + N_TOKENS))
    status = llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, N_TOKENS))
    logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), (n_vocab,))
    result = {"status": status, "is_finite": bool(np.isfinite(logits).all() and logits.std() > 0)}
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)
    return result


if __name__ == "__main__":
    main()
