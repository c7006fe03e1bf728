"""Refuted claims: nothing that a user can read, in any language, says one of them."""

import re
from pathlib import Path

import pytest

from app.advice.text import LANGUAGES, catalogue

ROOT = Path(__file__).parents[3]

NEVER = {
    "1 LLaMA-2-7B with grouped heads": r"llama-?2.{0,60}(gqa|8 kv|128 kib|分组)",
    "2 a made-up registry value": (
        r"(create|add|write|新建|创建|添加|写入).{0,30}tcctimeout"
        r"|regedit|reg(\.exe)? add|new-itemproperty|set-itemproperty"
    ),
    "2 driver model called persistence": r"-dm 1",
    "3 quantised weights called slow on GPUs": (
        r"(q4_k_m|k-?quants?|quanti[sz]ed?|量化).{0,30}(slower than|比 ?fp16 ?慢|更慢)"
        r"|gguf.{0,20}(is a cpu|for cpus|only cpu|cpu 格式|专为 ?cpu)"
        r"|(cannot|can't|无法|不能).{0,15}(use )?tensor core"
    ),
    "4 link speeds of the wrong width": (
        r"gen ?3 x16.{0,20}32 ?gb|force gen ?4|强制.{0,6}gen ?4|12 ?gb/s.{0,30}(bad|坏|异常)"
    ),
    "5 Resizable BAR switched off": (
        r"(disable|switch off|turn off|关闭|禁用|停用).{0,20}(resizable bar|rebar)"
    ),
    "6 another card's figures": r"2560 (cuda )?cores|4060 laptop.{0,60}272|2560 个.{0,6}核",
    "7 FP8 of Ada": r"(hopper|ada).{0,30}fp8|fp8.{0,40}cuda 12\.2",
    "8 idle lanes and bank conflicts": (
        r"bank conflict|idle lanes|of 32 lanes|coalesced|coalescing|存储体冲突|合并访存"
        r"|low (gpu-?util|utili[sz]ation).{0,40}bandwidth|利用率低.{0,20}带宽瓶颈"
    ),
    "9 fragmentation blamed": r"fragmentation|显存碎片|block[- ]size 32",
    "10 dmon as a bandwidth meter": r"dmon -s [mu]|dcgm.{0,20}100[1-5]|15 ?% rule",
    "11 commands that do not exist": (
        r"vllm-bench|--device-id|--pipeline-parallel-layout|vllm_max_num_batched|cudaprofilerrange"
    ),
    "12 a debug switch, or resets that falsify": (
        r"\b(set|export|设置) ?cuda_launch_blocking"
        r"|(tdr|reset|重置).{0,40}(wrong answer|答案错误)"
    ),
    "13 TCC on Linux": r"linux.{0,20}\btcc\b|\btcc\b.{0,20}linux",
    "14 one temperature for all cards": r"(all|every|throttles?|所有).{0,20}83 ?°",
    "15 article figures as reference": r"(8\.2|12\.7|4\.1) s/token|roi.{0,10}320",
    "16 ceilings called reached": r"4090.{0,40}100 tok|a100.{0,40}140 tok",
    "17 copies called zero-copy": r"cudamemcpy.{0,40}zero.?copy|零拷贝",
    "18 wheels": r"pip install torch|torch 2\.1\.0",
    "19 FP8 for attention only": r"fp8.{0,30}(attention|注意力)",
    "20 iGPU folklore": r"18 ms|dp4a",
}
"""Number in the list of refuted claims, and what it is about → how it would read."""
DOCUMENTS = ("README.md", "docs/*.md", "assets/text/*.toml", "assets/translations/*.ts")
SOURCES = ("app/**/*.py", "views/**/*.py", "probes/**/*.py")


def said_in_texts() -> list[tuple[str, str]]:
    return [
        (f"{language} {section}.{code}", text)
        for language in LANGUAGES
        for section, texts in catalogue(language).items()
        for code, text in texts.items()
    ]


def said_elsewhere() -> list[tuple[str, str]]:
    files = [path for pattern in (*DOCUMENTS, *SOURCES) for path in sorted(ROOT.glob(pattern))]
    return [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in files]


@pytest.mark.parametrize("claim", NEVER)
def test_refuted_claim_is_never_said(claim: str) -> None:
    """Neither a sentence, nor a word in the window, nor a page of the manual says it."""
    wrong = re.compile(NEVER[claim], re.IGNORECASE)
    found = [
        (where, line.strip())
        for where, text in (*said_in_texts(), *said_elsewhere())
        for line in text.splitlines()
        if wrong.search(line)
    ]
    assert not found, found


def test_each_pattern_can_find_its_claim() -> None:
    """A pattern that matched nothing would guard nothing: one example of each kind."""
    examples = (
        "LLaMA-2-7B uses GQA with 8 KV heads", "Create TccTimeout in the registry",
        "新建 TccTimeout", "nvidia-smi -dm 1 is persistence mode",
        "Q4_K_M is slower than FP16 on GPU",
        "GGUF is a CPU format", "K-quants cannot use Tensor Cores", "Gen3 x16 = 32 GB/s",
        "Disable Resizable BAR", "请禁用 Resizable BAR", "4060 Laptop: 2560 cores, 272 GB/s",
        "Ada only has Hopper FP8", "bank conflicts waste bandwidth", "90 % fragmentation",
        "dmon -s m shows bandwidth", "run vllm-bench", "set CUDA_LAUNCH_BLOCKING=1",
        "Linux runs TCC", "throttles at 83 °C", "ROI 320 %", "4090 reaches 100 tok/s",
        "cudaMemcpy is zero-copy", "pip install torch is always CPU", "FP8 only for attention",
        "hand-over costs 18 ms",
    )  # fmt: skip
    for example in examples:
        assert any(re.search(p, example, re.IGNORECASE) for p in NEVER.values()), example
    unmatched = [
        n for n, p in NEVER.items() if not any(re.search(p, e, re.IGNORECASE) for e in examples)
    ]
    assert unmatched == []
