"""What the core says in English can be said in every language of the window."""

import re
import tomllib
from collections import Counter
from string import Formatter

import pytest

from app.advice.said import said, templates
from app.advice.text import FALLBACK, LANGUAGES, render
from app.domain.errors import EnvironmentProblem
from app.gguf.magic import _FOREIGN
from app.rig.death import explain
from app.rig.ends import WorkerDied
from app.runtime import asset
from tests.fakes.spoken import sentences

OTHERS = [language for language in LANGUAGES if language != FALLBACK]

SENTENCES = tuple(sentences())

# Templates that are put together at run time: what they come to, one example of each shape.
PUT_TOGETHER = {
    "The engine starts: {}": (
        "The engine starts: no engine",
        "The engine starts: llama.cpp b1, backends CPU; devices besides the CPU: none",
    ),
    "{}, but memory rose on {} by {} MiB": (
        "A trial on CUDA0 runs: decode 9 tok/s (measured), but memory rose on card by 5 MiB",
    ),
    "{} measured by another engine build: {}": (
        "1 stored profile was measured by another engine build: x",
        "2 stored profiles were measured by another engine build: x",
    ),
    "{}: {}.": ("No engine: it broke.", "The libraries in lib cannot be used: it broke."),
    "{}, signed in where the site asks for it, not the page that shows it.": (),
    "{} from the same page.": (),
    "The engine could not {}{}": (
        "The engine could not create a context: no room",
        "The engine could not load model.gguf and gave no reason.",
        "The engine could not decode (code -3): it said so",
    ),
    "The devices are in use by another RigTune{}.": (
        "The devices are in use by another RigTune.",
        "The devices are in use by another RigTune (tune, process 12).",
    ),
    "A context of {} tokens{} is more than {} was trained for: {} tokens per slot.": (
        "A context of 9 tokens in 4 slots is more than x was trained for: 2 tokens per slot.",
    ),
    "A context of {} tokens{} is more than {} was trained for: {} tokens.": (
        "A context of 9 tokens is more than x was trained for: 2 tokens.",
    ),
    "{} {} tokens; the context holds {}.": (
        "The chat needs 9 tokens; the context holds 8.",
        "The system prompt and this message alone need 9 tokens; the context holds 8.",
    ),
    "{}, {}: the system would end the engine.": (
        "RAM must hold 9 GiB and 8 GiB is available, even with swap: the system would end the "
        "engine.",
    ),
    "{}: it would be swapped out and read back for every token (thrashing).": (
        "RAM must hold 9 GiB and 8 GiB is available: it would be swapped out and read back for "
        "every token (thrashing).",
    ),
    "{}: weights would be read from disk again for every token (thrashing).": (
        "RAM must hold 9 GiB and 8 GiB is available: weights would be read from disk again for "
        "every token (thrashing).",
    ),
    "{}. What runs a model (bench, tune, chat) wakes it.": (
        "card sleeps and stays asleep: the figures are the formula's. What runs a model (bench, "
        "tune, chat) wakes it.",
        "a and b sleeps and stays asleep: the figures are the formula's, not the dry run's, which "
        "would wake it. What runs a model (bench, tune, chat) wakes it.",
    ),
    "The model's chat template {}: {}.": (
        "The model's chat template refused the conversation: no.",
        "The model's chat template is not safe to use: it does not end.",
    ),
}


def spoken() -> list[str]:
    """Return every sentence with marked values in its gaps, once."""
    found: dict[str, None] = {}
    for _, template in SENTENCES:
        examples = PUT_TOGETHER.get(template)
        if examples is None:
            pieces = template.split("{}")
            marks = [f"v{i}" for i in range(1, len(pieces))]
            examples = ("".join(a + b for a, b in zip(pieces, [*marks, ""], strict=True)),)
        found.update(dict.fromkeys(examples))
    return list(found)


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_of_the_code_has_a_translation(language: str) -> None:
    """A new sentence in the core must come with its translation."""
    texts = spoken()
    assert len(texts) > 250
    assert [text for text in texts if said(text, language) is None] == []


@pytest.mark.parametrize("language", OTHERS)
def test_translated_sentences_keep_their_values(language: str) -> None:
    """No value may get lost or be invented on the way."""
    for text in spoken():
        other = said(text, language) or ""
        lost = set(re.findall(r"\bv\d\b", text)) - set(re.findall(r"v\d", other))
        assert lost <= ({"v3"} if "of them v3 missing" in text else set()), text


@pytest.mark.parametrize("language", OTHERS)
def test_no_sentence_is_translated_twice(language: str) -> None:
    """Of two translations nobody knows which one is shown."""
    sections = tomllib.loads(asset(f"text/said_{language}.toml").read_text("utf-8"))
    every = [english for texts in sections.values() for english in texts]
    assert [english for english, n in Counter(every).items() if n > 1] == []


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_has_the_gaps_of_its_sentence(language: str) -> None:
    """A gap without a value cannot be filled in; one word alone may differ, as in plurals."""
    sections = tomllib.loads(asset(f"text/said_{language}.toml").read_text("utf-8"))
    for texts in sections.values():
        for english, other in texts.items():
            ours, theirs = (
                [name for _, name, _, _ in Formatter().parse(text) if name is not None]
                for text in (english, other)
            )
            assert ours == [str(i) for i in range(1, len(ours) + 1)], english
            assert set(theirs) <= set(ours), english


@pytest.mark.parametrize(("what", "hint"), [(row[2], row[3]) for row in _FOREIGN])
def test_files_that_are_no_models_are_named(what: str, hint: str) -> None:
    """Each kind of file that somebody takes for a model is named in Chinese as well."""
    problem = EnvironmentProblem("gguf", f"model.bin {what}.", hint)
    assert said(problem.info.message, "zh") is not None
    assert said(problem.info.hint, "zh") is not None


@pytest.mark.parametrize("phase", ["start", "load", "context", "warm_up", "prefill", "decode"])
@pytest.mark.parametrize("code", [None, 3, -9, -4, -7, -11, -200, 0xC0000005, 0xC0000135])
def test_every_death_of_the_engine_is_told(code: int | None, phase: str) -> None:
    """However a worker ends, only what the engine itself wrote may stay in English."""
    error = explain(WorkerDied(code=code, lines=("GGML_ASSERT",), protocol=None), phase).error
    for text in (error.message, error.hint):
        other = said(text, "zh")
        assert other is not None
        left = re.sub(r"GGML_ASSERT|SIG\w+|VK_\w+|Vulkan|none", "", other)
        assert re.findall(r"[A-Za-z]{2,}", left) == []


def test_a_sentence_inside_a_sentence_is_translated() -> None:
    """What the engine said stays; what RigTune said about it does not stay in English."""
    text = (
        "No configuration of this model ran to its end. The last trial said: The device (or RAM) "
        "had no room for what these settings need. The engine said: cudaMalloc failed"
    )
    other = said(text, "zh")
    assert other is not None
    assert re.findall(r"[A-Za-z]+", other) == ["cudaMalloc", "failed"]


@pytest.mark.parametrize(
    "text",
    [
        "A trial on the CPU runs: decode 12.3 tok/s (measured); before: 11 tok/s (2026-01-02, "
        "ac power, performance mode), +3 %",
        "A trial on CUDA0 runs: decode 9 tok/s (measured); memory rose there by 5 MiB; before: "
        "11 tok/s (2026-01-02, battery power), -3 %",
        "RTX: discrete, drives a display, may sleep when idle, 12.0 GiB; engine names: CUDA0",
        "A trial on the CPU failed: The graphics driver reset the device or lost it.",
        "drm: nothing found",
        "nvml: the vendor's library is not installed",
    ],
)
def test_a_line_of_the_self_test_is_told(text: str) -> None:
    """Its pieces are put together at run time; none may stay in English."""
    left = re.sub(r"CPU|CUDA0|RTX|tok/s|[MG]iB|nvml|drm", "", said(text, "zh") or text)
    assert re.findall(r"[A-Za-z]{2,}", left) == []


def test_several_sentences_are_translated_one_by_one() -> None:
    """Two notes joined by a space are two sentences, also where a name holds a full stop."""
    empty = said("Qwen2. 5.gguf is empty (0 bytes).", "zh")
    other = said("Qwen2. 5.gguf is empty (0 bytes). Choose another file.", "zh")
    assert other == f"{empty}请选择其他文件。"


def test_half_a_translation_is_none() -> None:
    """A sentence that nobody translated is reported, not mixed."""
    assert said("Nobody wrote this sentence.", "zh") is None
    assert said("Choose another file. Nobody wrote this sentence.", "zh") is None


def test_english_stays_as_it_is() -> None:
    """The language of the core needs no look-up."""
    assert said("Nobody wrote this sentence.", "en") == "Nobody wrote this sentence."


def test_a_hostile_name_does_not_choose_the_sentence() -> None:
    """A file may be called like a sentence; what is said of it must not change."""
    name = "There is no file {1}.gguf"
    other = said("x is empty (0 bytes).", "zh")
    assert other is not None
    assert said(f"{name} is empty (0 bytes).", "zh") == other.replace("x", name)


def test_the_most_specific_template_wins() -> None:
    """``cannot be read: permission denied`` must not be taken for ``cannot be``."""
    other = said("a.gguf cannot be read: permission denied.", "zh") or ""
    assert other.endswith("没有权限。")
    assert templates("zh")[0].n_fixed >= templates("zh")[-1].n_fixed


@pytest.mark.parametrize(
    ("english", "values"),
    [
        ("Results are kept in /home/x", ("/home/x",)),
        ("A trial on CUDA0 runs: decode 41 tok/s (measured)", ("CUDA0", "41 tok/s")),
        (
            "A trial on CUDA0 runs: decode 41 tok/s (measured); memory rose there by 291 MiB; "
            "before: 40 tok/s (2026-01-02, ac power), +2 %",
            ("CUDA0", "291", "2026-01-02", "+2"),
        ),
        ("A trial on the CPU runs: decode 9 tok/s (measured)", ("CPU", "9 tok/s")),
        ("A trial on Vulkan0 failed: The engine crashed in load (SIGSEGV).", ("Vulkan0",)),
        ("Fastest with this model: CUDA0, 12.3 times as fast as the CPU", ("12.3", "CPU")),
        ("No trial can run: The disk is full: /x was not written.", ("/x",)),
    ],
)
def test_steps_of_the_self_test_are_told(english: str, values: tuple[str, ...]) -> None:
    """What the advice page shows of it, with its values, and no English sentence around them."""
    other = said(english, "zh")
    assert other is not None
    assert all(value in other for value in values)
    assert not re.search(r"trial|decode|measured|Fastest|kept", other)


@pytest.mark.parametrize(
    ("code", "data"),
    [
        ("out_of_memory", {"count": 2, "n_gpu_layers": 17, "n_ctx": 4096}),
        ("memory_errors", {"gpu": "Card", "count": 3}),
    ],
)
def test_words_that_follow_a_number_are_no_value(code: str, data: dict[str, str | int]) -> None:
    """The noun chosen for English does not take the number's place in the other language."""
    english, other = (render("finding", code, data, language) for language in ("en", "zh"))
    assert said(english, "zh") == other
