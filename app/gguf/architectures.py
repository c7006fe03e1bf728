"""What metadata cannot tell: defaults that llama.cpp's source keeps per architecture.

Source: ``load_arch_hparams`` in src/models/*.cpp, ``create_memory`` in src/llama-model.cpp and
the lists in src/llama-arch.cpp. An architecture that is not here still gets exact weights.
"""

from typing import NamedTuple


class SlidingWindow(NamedTuple):
    """How an architecture uses its sliding window.

    Attributes:
        period: Every ``period``-th layer is dense; 0 = only the file's pattern list counts.
        dense_first: Whether the dense layer comes first in a period, not last.
        n_swa: Window where the file states none; 0 = then there is no window.
        fixed: Whether ``n_swa`` overrides what the file states (unless it states 0).
    """

    period: int = 0
    dense_first: bool = False
    n_swa: int = 0
    fixed: bool = False


SLIDING_WINDOWS: dict[str, SlidingWindow] = {
    "afmoe": SlidingWindow(4),
    "cohere2": SlidingWindow(4),
    "cohere2moe": SlidingWindow(4, dense_first=True),
    "exaone-moe": SlidingWindow(4, n_swa=128),
    "exaone4": SlidingWindow(4, n_swa=4096),
    "gemma-embedding": SlidingWindow(6),
    "gemma2": SlidingWindow(2, n_swa=4096),
    "gemma3": SlidingWindow(6),
    "gemma3n": SlidingWindow(5),
    "gemma4": SlidingWindow(),
    "gpt-oss": SlidingWindow(2),
    "granite_swa": SlidingWindow(),
    "laguna": SlidingWindow(4, dense_first=True),
    "llama4": SlidingWindow(4, n_swa=8192, fixed=True),
    "maple": SlidingWindow(),
    "mellum": SlidingWindow(4),
    "mimo2": SlidingWindow(),
    "modern-bert": SlidingWindow(3, dense_first=True),
    "muse-glimmer": SlidingWindow(4),
    "olmo2": SlidingWindow(4),
    "plamo3": SlidingWindow(8),
    "smallthinker": SlidingWindow(4, dense_first=True, n_swa=4096, fixed=True),
    "spark2_5": SlidingWindow(),
    "step35": SlidingWindow(),
}
"""Architectures that look at ``attention.sliding_window``; the others ignore it (also phi3)."""

EXAONE4_SWA_LAYERS = 64
"""exaone4 has a window in its 32B size only, which it recognises by the number of layers."""

SMALLTHINKER_NEEDS_KEY = "smallthinker"
"""Has its fixed window only where the file states one."""

KV_FROM_START: dict[str, int] = {"gemma3n": 20}
"""Layers with an own cache, counted from the start; later ones re-use an earlier cache."""

SHARED_KV_ARCHS = frozenset({"gemma4"})
"""Architectures that read ``attention.shared_kv_layers``."""

RECURRENT_ARCHS = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
"""``llm_arch_is_recurrent``: no KV cache at all, state in every layer."""

HYBRID_ARCHS = frozenset(
    {
        "bailingmoe3",
        "falcon-h1",
        "granitehybrid",
        "jamba",
        "kimi-k3",
        "kimi-linear",
        "lfm2",
        "lfm2moe",
        "minimax-01",
        "nemotron_h",
        "nemotron_h_moe",
        "plamo2",
        "qwen35",
        "qwen35moe",
        "qwen3next",
    }
)
"""``llm_arch_is_hybrid`` less those with further caches (see ``SPECIAL_ARCHS``)."""

FULL_ATTENTION_INTERVAL: dict[str, int] = {
    "minimax-01": 8,
    "qwen35": 4,
    "qwen35moe": 4,
    "qwen3next": 4,
}
"""Every n-th layer is attention, unless the file says otherwise; draft layers hold no cache."""

DRAFT_ARCHS = frozenset({"dflash", "eagle3", "gemma4-assistant"})
"""Guess words for another model; alone they write nothing useful."""

SPEECH_ARCHS = frozenset({"pockettts", "qwen3tts", "wavtokenizer-dec"})

TWO_PART_ARCHS = frozenset({"t5"})
"""Encoder and decoder: the prompt goes through a pass of its own."""

ENCODER_ARCHS = frozenset(
    {
        "bert",
        "eurobert",
        "gemma-embedding",
        "jina-bert-v2",
        "jina-bert-v3",
        "llama-embed",
        "modern-bert",
        "neo-bert",
        "nomic-bert",
        "nomic-bert-moe",
        "t5encoder",
    }
)
"""Models that give vectors, not text."""

DIFFUSION_ARCHS = frozenset({"dream", "llada", "llada-moe", "rnd1"})
"""Models that refine a whole text at once."""

CACHELESS_ARCHS = (ENCODER_ARCHS | DIFFUSION_ARCHS) - {"llama-embed", "t5encoder"}
"""llama.cpp gives them no memory object."""

SPECIAL_ARCHS = frozenset(
    {
        "deepseek32",
        "deepseek4",
        "dflash",
        "dots3note",
        "eagle3",
        "gemma4-assistant",
        "glm-dsa",
        "glm5-next",
        "graniteswitch",
        "hrm_text",
        "hy_v4",
        "minimax-m3",
        "nanbeige",
        "pockettts",
        "qwen3tts",
        "qwen4exp",
        "t5",
        "wavtokenizer-dec",
    }
)
"""Known to llama.cpp, with caches (indexer keys, shared, looped, cross) no formula covers."""

PLAIN_ARCHS = frozenset(
    {
        "afmoe",
        "apertus",
        "arcee",
        "arctic",
        "baichuan",
        "bailingmoe",
        "bailingmoe2",
        "bitnet",
        "bloom",
        "chameleon",
        "chatglm",
        "codeshell",
        "cogvlm",
        "cohere2",
        "cohere2moe",
        "command-r",
        "dbrx",
        "deci",
        "deepseek",
        "deepseek2",
        "deepseek2-ocr",
        "dots1",
        "ernie4_5",
        "ernie4_5-moe",
        "exaone",
        "exaone-moe",
        "exaone4",
        "falcon",
        "gemma",
        "gemma2",
        "gemma3",
        "gemma3n",
        "gemma4",
        "glm4",
        "glm4moe",
        "gpt-oss",
        "gpt2",
        "gptj",
        "gptneox",
        "granite",
        "granite_swa",
        "granitemoe",
        "grok",
        "grovemoe",
        "hunyuan-dense",
        "hunyuan-moe",
        "hunyuan_vl",
        "hy_v3",
        "internlm2",
        "jais",
        "jais2",
        "laguna",
        "llama",
        "llama4",
        "maincoder",
        "maple",
        "mellum",
        "mimo2",
        "minicpm",
        "minicpm3",
        "minimax-m2",
        "mistral3",
        "mistral4",
        "mpt",
        "muse-glimmer",
        "nemotron",
        "olmo",
        "olmo2",
        "olmoe",
        "openelm",
        "orion",
        "paddleocr",
        "pangu-embedded",
        "phi2",
        "phi3",
        "phimoe",
        "plamo",
        "plamo3",
        "plm",
        "qwen",
        "qwen2",
        "qwen2moe",
        "qwen2vl",
        "qwen3",
        "qwen3moe",
        "qwen3vl",
        "qwen3vlmoe",
        "refact",
        "seed_oss",
        "smallthinker",
        "smollm3",
        "spark2_5",
        "stablelm",
        "starcoder",
        "starcoder2",
        "step35",
        "talkie",
        "xverse",
    }
)
"""Known to llama.cpp with its standard cache, with or without a sliding window or MLA."""

FORMULA_ARCHS = PLAIN_ARCHS | RECURRENT_ARCHS | HYBRID_ARCHS | ENCODER_ARCHS | DIFFUSION_ARCHS

KNOWN_ARCHS = FORMULA_ARCHS | SPECIAL_ARCHS
"""Every text architecture of the vendored llama.cpp."""
