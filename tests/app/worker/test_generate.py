"""Answers of a real engine in a real child: templates, sampling, prefix reuse, golden streams."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.domain.outcome import Outcome
from app.domain.pacing import Pace
from app.rig.process import Launch, WorkerProcess, drain, start_worker
from app.worker import protocol
from app.worker.writer import MIN_GAP_NS
from tests.fakes.chat_models import (
    FAMILIES,
    GREEDY,
    SETTINGS,
    ask,
    chat_model,
    literal,
    load,
    pieces,
    question,
)
from tests.fakes.demo import demo_spec
from tests.fakes.model_tables import Value
from tests.fakes.models import make_model

pytestmark = pytest.mark.engine

REPOSITORY = Path(__file__).resolve().parents[3]
GOLDEN = REPOSITORY / "tests" / "golden" / "chat"
LOGITS = Path(__file__).with_name("logits_after_reuse.py")
WINDOWED: dict[str, Value] = {"gemma3.attention.sliding_window": 32}


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    process = drain(start_worker(Launch()))
    yield process
    process.close()


def answer(
    worker: WorkerProcess, request: protocol.Generate
) -> tuple[protocol.GenerateFinished, list[protocol.Reply]]:
    reply, seen = ask(worker, request)
    assert isinstance(reply, protocol.GenerateFinished), reply
    return reply, seen


def refused(worker: WorkerProcess, request: protocol.Message) -> protocol.Failed:
    reply, _ = ask(worker, request)
    assert isinstance(reply, protocol.Failed), reply
    assert worker.can_be_reused()
    return reply


def text_of(worker: WorkerProcess, request: protocol.Generate) -> str:
    return "".join(text for _, text in pieces(answer(worker, request)[1]))


def by_grammar(text: str) -> protocol.Sampling:
    return msgspec.structs.replace(GREEDY, grammar=literal(text))


# --- families --------------------------------------------------------------------------------

WRITTEN = {
    "chatml": "<think>\nhm\n</think>\n\nyes é 🙂 <tool_call>{}</tool_call>",
    "deepseek": "hm\n</think>\n\nyes",
    "mistral": "yes[TOOL_CALLS][{}]",
    "harmony": "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
    "<|channel|>final<|message|>yes",
    "llama3": "yes é 🙂",
    "gemma": "yes",
    "phi3": "yes",
    "granite": "yes",
}


@pytest.mark.parametrize("family", WRITTEN)
def test_stream_of_a_family_is_as_recorded(
    worker: WorkerProcess, tmp_path: Path, family: str
) -> None:
    """Every event of an answer, forced by a grammar, is as in the golden transcript.

    How many tokens go into one message depends on the clock, so the text of one kind is joined.
    """
    load(worker, chat_model(tmp_path / "tiny.gguf", family))
    request = question("first", "an answer", "second", sampling=by_grammar(WRITTEN[family]))
    finished, seen = answer(worker, request)
    assert finished.reason == "stop"
    said = [protocol.Token(text=text, n_tok=0, kind=kind) for kind, text in pieces(seen)]
    before = [m for m in seen if not isinstance(m, protocol.Token)]
    lines = [_without_times(m) for m in (*before, *said, finished)]
    golden = (GOLDEN / f"{family}.ndjson").read_text(encoding="utf-8").splitlines()
    assert lines == golden


def _without_times(message: protocol.Reply) -> str:
    fields = msgspec.to_builtins(message)
    for name in ("v", "seq", "t_ns", "n_tok", "ttft_ns", "prefill_ns", "decode_ns"):
        fields.pop(name, None)
    return json.dumps(fields, ensure_ascii=False)


def test_fast_tokens_share_messages(worker: WorkerProcess, tmp_path: Path) -> None:
    """Tokens faster than the eye cost 30 messages a second at most, and none of them is lost."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    text = "faster than anybody reads " * 12
    finished, seen = answer(worker, question("x", sampling=by_grammar(text)))
    said = [m for m in seen if isinstance(m, protocol.Token)]
    # one at the start, one whenever the gap is over, one at the end
    assert len(said) <= 2 + finished.decode_ns // MIN_GAP_NS
    assert [m.n_tok for m in said] == sorted({m.n_tok for m in said})
    assert list(pieces(seen)) == [("answer", text)]


@pytest.mark.parametrize("family", FAMILIES)
def test_end_of_turn_of_every_family_ends_the_answer(
    worker: WorkerProcess, tmp_path: Path, family: str
) -> None:
    """An answer that may hold no text ends at once, and nothing of the marker is shown."""
    load(worker, chat_model(tmp_path / "tiny.gguf", family))
    nothing = msgspec.structs.replace(GREEDY, grammar='root ::= ""')
    finished, seen = answer(worker, question("x", sampling=nothing))
    assert (finished.reason, finished.n_gen) == ("stop", 1)
    assert list(pieces(seen)) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_templates_of_every_family_pass_their_check(
    worker: WorkerProcess, tmp_path: Path, family: str
) -> None:
    """Two turns are written whole, with known markers, and the turn's end ends an answer."""
    load(worker, chat_model(tmp_path / "tiny.gguf", family))
    reply, _ = ask(worker, protocol.CheckTemplate())
    assert isinstance(reply, protocol.TemplateChecked), reply
    assert reply.template == "model"
    assert reply.findings == ()
    assert reply.turn_end


@pytest.mark.parametrize(
    ("template", "code"),
    [
        ("{% for m in messages %}<|im_end|>{% endfor %}", "template_loses_text"),
        ("{{ messages[-1].content }}{% if add_generation_prompt %}:{% endif %}",
         "template_loses_text"),
        ("{% for m in messages %}<|alien|>{{ m.content }}<|im_end|>{% endfor %}",
         "foreign_markers"),
        ("{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}", "no_answer_prompt"),
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
         "{% if add_generation_prompt %}assistant:{% endif %}", "no_end_token"),
        ("{% for m in messages %}<|im_start|>{{ m.content }}<|im_start|>{% endfor %}"
         "{% if add_generation_prompt %}<|im_start|>{% endif %}", "no_end_token"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
         "chat_template"),
        ("{% if %}", "chat_template"),
    ],
)  # fmt: skip
def test_bad_templates_are_found(
    worker: WorkerProcess, tmp_path: Path, template: str, code: str
) -> None:
    """Each known fault is named with something to do about it."""
    load(worker, chat_model(tmp_path / "tiny.gguf", template=template))
    reply, _ = ask(worker, protocol.CheckTemplate())
    assert isinstance(reply, protocol.TemplateChecked), reply
    assert code in {f.error.code for f in reply.findings}
    assert all(f.error.hint for f in reply.findings)


def test_turn_end_that_is_no_token_can_be_a_stop(worker: WorkerProcess, tmp_path: Path) -> None:
    """A control token ends an answer when the user chose it as stop string."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    grammar = by_grammar("yes<|im_start|>no")
    finished, seen = answer(worker, question("x", sampling=grammar, stop=("<|im_start|>",)))
    assert finished.reason == "stop"
    assert list(pieces(seen)) == [("answer", "yes")]


# --- templates -------------------------------------------------------------------------------


def test_hostile_template_is_given_up(worker: WorkerProcess, tmp_path: Path) -> None:
    """An endless template ends in a sentence and the model stays loaded.

    After two seconds of work, which the template's own tests see to.
    """
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    load(worker, chat_model(tmp_path / "tiny.gguf", template=endless))
    assert refused(worker, question("x")).error.code == "chat_template"
    finished, seen = answer(worker, question("x", template="chatml", max_tokens=1))
    assert finished.n_gen == 1
    assert started(seen).template == "chatml"


def started(seen: list[protocol.Reply]) -> protocol.GenerateStarted:
    return next(r for r in seen if isinstance(r, protocol.GenerateStarted))


def test_broken_template_falls_back_to_the_one_it_is_taken_for(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """llama.cpp's built-in template is used and named."""
    broken = FAMILIES["chatml"].template + "{{ no.such.thing }}"
    load(worker, chat_model(tmp_path / "tiny.gguf", template=broken))
    finished, seen = answer(worker, question("x", max_tokens=1))
    assert started(seen).template == "chatml"
    load(worker, chat_model(tmp_path / "right.gguf"))
    right, _ = answer(worker, question("x", max_tokens=1))
    assert finished.n_prompt == right.n_prompt


def test_unknown_template_names_the_known_ones(worker: WorkerProcess, tmp_path: Path) -> None:
    """A mistyped template is refused with a list."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    failed = refused(worker, question("x", template="chatlm"))
    assert failed.error.code == "unknown_template"
    assert "chatml" in failed.error.hint


def test_answer_can_be_gone_on_with(worker: WorkerProcess, tmp_path: Path) -> None:
    """A last turn of the assistant is the beginning of the answer, with its reasoning."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    whole, _ = answer(worker, question("x", max_tokens=1))
    begun, _ = answer(worker, question("x", "abc", max_tokens=1))
    reply, _ = ask(worker, protocol.Tokenize(text="abc"))
    assert isinstance(reply, protocol.TokenizeFinished)
    assert begun.n_prompt > whole.n_prompt
    assert begun.n_reused == whole.n_prompt
    thought = protocol.ChatMessage(role="assistant", content="", reasoning="hm")
    messages = (*question("x").messages, thought)
    request = question("x", messages=messages, sampling=by_grammar(" so</think>yes"))
    _, seen = answer(worker, request)
    assert list(pieces(seen)) == [("reasoning", "so"), ("answer", "yes")]


def test_tokens_of_a_prompt_and_of_its_turns(worker: WorkerProcess, tmp_path: Path) -> None:
    """The gauge's numbers: all of the prompt, and each text alone."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    reply, _ = ask(worker, protocol.Tokenize(messages=question("abc", "de", "f").messages))
    assert isinstance(reply, protocol.TokenizeFinished)
    assert len(reply.per_message) == 3
    finished, _ = answer(worker, question("abc", "de", "f", max_tokens=1))
    assert reply.n_tok == finished.n_prompt


# --- sampling --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"repeat_penalty": 1.3},
        {"dry_multiplier": 0.8},
        {"temperature": 0.9, "xtc_probability": 0.5, "dry_multiplier": 0.5, "repeat_penalty": 1.1},
        {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0},
    ],
)
def test_seed_repeats_an_answer(
    worker: WorkerProcess, tmp_path: Path, fields: dict[str, float]
) -> None:
    """Every part of the chain can be used, and the same seed gives the same text."""
    load(worker, make_model(tmp_path / "tiny.gguf"))
    sampling = msgspec.structs.replace(protocol.Sampling(seed=7), **fields)
    texts = [
        "".join(
            t for _, t in pieces(answer(worker, question("a", sampling=sampling, max_tokens=20))[1])
        )
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


def test_repetition_is_penalised(worker: WorkerProcess) -> None:
    """The penalty changes a greedy answer that repeats itself."""
    load(worker, demo_spec().path)
    asked = [GREEDY, msgspec.structs.replace(GREEDY, repeat_penalty=2.0)]
    texts = [
        "".join(
            t for _, t in pieces(answer(worker, question("A A A A", sampling=s, max_tokens=8))[1])
        )
        for s in asked
    ]
    assert texts[0] != texts[1]


def test_json_schema_is_followed(worker: WorkerProcess, tmp_path: Path) -> None:
    """Even a model of random weights writes what the schema asks for."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    schema = json.dumps(
        {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    )
    for sampling in (GREEDY, protocol.Sampling(seed=3)):
        chosen = msgspec.structs.replace(sampling, json_schema=schema)
        text = text_of(worker, question("x", sampling=chosen, max_tokens=60))
        assert isinstance(json.loads(text)["ok"], bool)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"grammar": "root ::= ("}, "bad_grammar"),
        ({"grammar": 'other ::= "a"'}, "bad_grammar"),
        ({"json_schema": "{"}, "bad_json_schema"),
        ({"json_schema": '{"$ref": "https://example.org/x.json"}'}, "bad_json_schema"),
        ({"top_p": 2.0}, "bad_sampling"),
        ({"temperature": -1.0}, "bad_sampling"),
        ({"repeat_penalty": 0.0}, "bad_sampling"),
    ],
)  # fmt: skip
def test_bad_sampling_is_refused(
    worker: WorkerProcess, tmp_path: Path, fields: dict[str, object], code: str
) -> None:
    """A wrong value or grammar is a sentence, not an abort."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    sampling = msgspec.structs.replace(GREEDY, **fields)
    assert refused(worker, question("x", sampling=sampling)).error.code == code


@pytest.mark.parametrize("text", ["", "\0\0", "\u202eabc\u202c", "🙂" * 50, "<|im_end|>"])
def test_odd_messages_are_answered(worker: WorkerProcess, tmp_path: Path, text: str) -> None:
    """NUL, bidirectional controls, emoji and markers in a message break nothing."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    finished, _ = answer(worker, question(text, max_tokens=2))
    assert finished.n_prompt > 0


def test_stop_string_of_the_answer_only(worker: WorkerProcess, tmp_path: Path) -> None:
    """A stop string across tokens ends the answer before it."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    request = question("x", sampling=by_grammar("abc def"), stop=("c d",))
    finished, seen = answer(worker, request)
    assert (finished.reason, list(pieces(seen))) == ("stop", [("answer", "ab")])


def test_pace_slows_and_can_be_cancelled(worker: WorkerProcess, tmp_path: Path) -> None:
    """A paced answer is the same answer, and stopping it does not wait for the pause."""
    load(worker, make_model(tmp_path / "tiny.gguf"))
    fast = answer(worker, question("a", max_tokens=12))[1]
    slow = answer(worker, question("a", max_tokens=12, pace=Pace(duty=0.2)))[1]
    assert list(pieces(fast)) == list(pieces(slow))


# --- what is kept ----------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["gemma3", "mamba", "jamba", "qwen3next"])
def test_second_answer_to_a_question_does_not_read_it_again(
    worker: WorkerProcess, tmp_path: Path, arch: str
) -> None:
    """Where the cache cannot be cut, the kept state serves a new answer and the next turn."""
    extra = WINDOWED if arch == "gemma3" else {}
    load(worker, make_model(tmp_path / "tiny.gguf", arch, extra=extra))
    settings = msgspec.structs.replace(SETTINGS, n_ctx=2048, n_batch=256, n_ubatch=32)
    text = "the in er an " * 60
    first, seen = answer(worker, question(text, settings=settings, max_tokens=60))
    again, repeated = answer(worker, question(text, settings=settings, max_tokens=60))
    assert again.n_reused == first.n_prompt - 1
    assert list(pieces(repeated)) == list(pieces(seen))
    other = msgspec.structs.replace(settings, n_ctx=1792)
    branch = question(text, "xyz", "abc", settings=settings, max_tokens=8)
    longer, said = answer(worker, branch)
    assert longer.n_reused >= first.n_prompt - 1
    fresh, expected = answer(worker, msgspec.structs.replace(branch, settings=other))
    assert fresh.n_reused == 0
    assert list(pieces(said)) == list(pieces(expected))


@pytest.mark.parametrize("arch", ["llama", "gemma3", "mamba", "jamba"])
def test_branch_that_was_left_is_not_read_again(
    worker: WorkerProcess, tmp_path: Path, arch: str
) -> None:
    """Back from another branch, the kept state answers as if it had never been left."""
    extra = WINDOWED if arch == "gemma3" else {}
    load(worker, make_model(tmp_path / "tiny.gguf", arch, extra=extra))
    settings = msgspec.structs.replace(SETTINGS, n_ctx=2048, n_batch=256, n_ubatch=32)
    asked = question("the in er an " * 60, settings=settings, max_tokens=20)
    first, said = answer(worker, asked)
    elsewhere, _ = answer(worker, question("on at is " * 60, settings=settings, max_tokens=4))
    assert elsewhere.n_reused < 32
    back, repeated = answer(worker, asked)
    assert back.n_reused == first.n_prompt - 1
    assert list(pieces(repeated)) == list(pieces(said))


@pytest.mark.slow
def test_logits_after_reuse_equal_those_of_a_fresh_run() -> None:
    """On the demo model, whose window is 512 tokens: cut, restored and extended caches."""
    done = subprocess.run(
        [sys.executable, str(LOGITS), demo_spec().path],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    cases = json.loads(done.stdout.splitlines()[-1])
    assert {name: c["n_reused"] > 0 for name, c in cases.items()} == {
        "extended": True,
        "short cut": True,
        "restored": True,
        "beyond the window": False,
        "branch": True,
    }
    assert cases["branch"]["n_reused"] == 700
    assert {name: c["largest_difference"] for name, c in cases.items()} == dict.fromkeys(cases, 0.0)


def test_too_small_context_says_how_much_is_needed(worker: WorkerProcess, tmp_path: Path) -> None:
    """A prompt that does not fit is counted, not decoded."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    settings = msgspec.structs.replace(SETTINGS, n_ctx=256)
    finished, seen = answer(worker, question("a" * 400, settings=settings))
    assert finished.reason == "context_full"
    assert started(seen).n_ctx == 256
    assert finished.n_prompt > 256


def test_damaged_weights_end_in_a_sentence(worker: WorkerProcess, tmp_path: Path) -> None:
    """Values that are not numbers are no answer."""
    path = chat_model(tmp_path / "tiny.gguf")
    data = bytearray(path.read_bytes())
    data[-20_000:] = b"\xff" * 20_000
    path.write_bytes(data)
    load(worker, path)
    failed = refused(worker, question("x"))
    assert (failed.outcome, failed.error.code) == (Outcome.UNSUPPORTED, "nan_logits")


def test_settings_decide_the_context(worker: WorkerProcess, tmp_path: Path) -> None:
    """Another context starts empty; the same one is kept."""
    load(worker, chat_model(tmp_path / "tiny.gguf"))
    other = msgspec.structs.replace(SETTINGS, n_ctx=768)
    reused = [
        answer(worker, question("abc", settings=s, max_tokens=1))[0].n_reused
        for s in (SETTINGS, SETTINGS, other)
    ]
    assert reused[0] == 0
    assert reused[1] > 0
    assert reused[2] == 0
