"""The small parts of a chat: attachments, export, gauge, presets, neighbours, self-test."""

import codecs
import json
from pathlib import Path

import pytest

from app.chat.attach import MAX_BYTES, Attachment, read_attachment, with_attachments
from app.chat.context_use import context_use
from app.chat.conversation import Conversation
from app.chat.export import save, to_json, to_markdown
from app.chat.neighbours import GROWTH_BYTES, LOW_BYTES, Neighbours
from app.chat.presets import PRESETS
from app.chat.selftest import TRIAL_S, Trial
from app.chat.thread import Thread
from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.machine import GpuProcess, GpuSample
from app.worker.protocol import ChatMessage, TemplateChecked, TemplateFinding, TokenizeFinished
from tests.fakes.chat_engine import ScriptedEngine

GIB = 1 << 30


# --- attachments -----------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_files_are_read(tmp_path: Path, encoding: str) -> None:
    """UTF-8 with and without its mark, and UTF-16."""
    path = tmp_path / "notes.txt"
    path.write_text("Grüße 🙂", encoding=encoding)
    assert read_attachment(path) == Attachment(name="notes.txt", text="Grüße 🙂")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"a\0b", "attachment_not_text"),
        (b"\xff\xff\xff", "attachment_not_text"),
        (codecs.BOM_UTF16_LE + b"a", "attachment_not_text"),
        (b"x" * (MAX_BYTES + 1), "attachment_too_large"),
        (None, "attachment_unreadable"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes | None, code: str) -> None:
    """Binary, damaged, huge and missing files end in a sentence."""
    path = tmp_path / "file"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(EnvironmentProblem) as caught:
        read_attachment(path)
    assert caught.value.info.code == code


def test_a_file_cannot_end_its_own_fence() -> None:
    """Code fences inside a file do not break out of the one around it."""
    text = with_attachments("look", [Attachment(name="a.md", text="```py\nx\n```")])
    assert text == "File a.md:\n````\n```py\nx\n```\n````\n\nlook"


# --- export ----------------------------------------------------------------------------------


def test_export_holds_what_was_said() -> None:
    """Markdown shows the branch in view, JSON every branch."""
    conversation = Conversation(ScriptedEngine("no", "yes", reasoning="hm"), system="be\nkind")
    list(conversation.ask("really?"))
    list(conversation.retry())
    text = to_markdown(conversation.thread, "Test")
    assert text.startswith("# Test\n\n> be\n> kind\n\n## You\n\nreally?\n\n## Model\n\n<details>")
    assert text.endswith("yes\n")
    assert "\nno\n" not in text
    document = json.loads(to_json(conversation.thread))
    assert document["schema"] == "rigtune.conversation/1"
    assert [t["content"] for t in document["turns"]] == ["really?", "no", "yes"]
    assert document["view"] == [document["turns"][0]["id"], document["turns"][2]["id"]]


# --- gauge and presets -----------------------------------------------------------------------


def test_export_that_cannot_be_written_names_what_helps(tmp_path: Path) -> None:
    """The place was the user's choice: it is not about where RigTune keeps its own files."""
    with pytest.raises(EnvironmentProblem) as caught:
        save(Thread(), tmp_path / "nowhere" / "chat.md")
    assert "nowhere" in caught.value.info.message
    assert caught.value.info.hint.startswith("Choose another folder")


def test_gauge_adds_up() -> None:
    """Every token of the prompt is accounted for."""
    messages = [ChatMessage(role=r, content="") for r in ("system", "user", "assistant", "user")]
    counted = TokenizeFinished(n_tok=120, per_message=(10, 20, 30, 40))
    use = context_use(messages, counted, 100)
    assert (use.system_tok, use.user_tok, use.assistant_tok) == (10, 60, 30)
    assert use.markers_tok == 20
    assert use.free_tok == -20


def test_presets_differ() -> None:
    """Three ways to begin, each with a prompt and a chain of its own."""
    assert len({p.id for p in PRESETS}) == 3
    assert len({p.system for p in PRESETS}) == 3
    assert len({p.sampling for p in PRESETS}) == 3


# --- neighbours ------------------------------------------------------------------------------


def sample(free: int, **held: int) -> GpuSample:
    """Return a moment in which programs hold bytes; ``own`` is ours."""
    pids = {"own": 1, "game": 2, "browser": 3}
    return GpuSample(
        key="gpu0",
        t_ns=0,
        vram_free_bytes=free,
        processes=tuple(GpuProcess(pid=pids[n], name=n, vram_bytes=b) for n, b in held.items()),
    )


def test_a_program_that_takes_the_memory_is_named_once() -> None:
    """Growth with little left is said once, and again after it has gone away."""
    neighbours = Neighbours({1})
    assert neighbours.look(sample(GIB, own=GIB, browser=GIB)) is None
    low = sample(LOW_BYTES // 2, own=4 * GIB, browser=GIB, game=2 * GROWTH_BYTES)
    wanted = neighbours.look(low)
    assert wanted
    assert (wanted.name, wanted.growth_bytes) == ("game", 2 * GROWTH_BYTES)
    assert neighbours.look(low) is None
    assert neighbours.look(sample(GIB, own=GIB, browser=GIB)) is None
    assert neighbours.look(low)


@pytest.mark.parametrize(
    "later",
    [
        sample(LOW_BYTES // 2, own=8 * GIB, browser=GIB),
        sample(GIB, own=GIB, browser=3 * GIB),
        GpuSample(key="gpu0", t_ns=0, vram_free_bytes=0),
    ],
)
def test_neighbours_are_not_blamed_without_evidence(later: GpuSample) -> None:
    """Our own growth, growth with room left, and unknown holders say nothing."""
    neighbours = Neighbours({1})
    neighbours.look(sample(2 * GIB, own=GIB, browser=GIB))
    assert neighbours.look(later) is None


# --- self-test -------------------------------------------------------------------------------


def findings(engine: ScriptedEngine, **fields: object) -> set[str]:
    trial = Trial(engine, **fields)  # type: ignore[arg-type]
    for _ in trial.run():
        pass
    return {f.error.code for f in trial.findings}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("yes", set()),
        ("Yes, the user is right.", set()),
        ("yes <|im_end|> <|im_start|>user", {"markers_leak"}),
        ("yes\nUser: and now?", {"markers_leak"}),
        ("[/INST] yes", {"markers_leak"}),
        ("yes\n### Instruction:\nmore", {"markers_leak"}),
        (" ".join(["yes"] * 99), {"no_end"}),
    ],
)
def test_two_turns_show_what_is_wrong(answer: str, found: set[str]) -> None:
    """Role markers in answers and answers without an end are found; good ones pass."""
    assert findings(ScriptedEngine(answer)) == found


def test_a_model_that_thinks_may_take_longer() -> None:
    """A bounded trial that ends in the reasoning proves nothing."""
    assert findings(ScriptedEngine(" ".join(["hm"] * 99), reasoning="hm")) == set()


def test_what_looking_finds_is_kept() -> None:
    """Findings of the template itself come first; a base model is not tried at all."""
    engine = ScriptedEngine("<|end|>")
    error = ErrorInfo(code="foreign_markers", message="m", hint="h")
    engine.checked = TemplateChecked(template="model", findings=(TemplateFinding(error=error),))
    assert findings(engine) == {"foreign_markers", "markers_leak"}
    engine.checked = TemplateChecked(template="text", findings=())
    assert findings(engine) == set()


def test_the_trial_does_not_keep_anyone_waiting() -> None:
    """On a slow machine it ends early, and the engine is stopped."""
    engine, now_s = ScriptedEngine(" ".join(["yes"] * 99)), [0.0]

    def pass_time() -> None:
        now_s[0] += 1

    engine.on_word = pass_time
    assert findings(engine, clock_s=lambda: now_s[0]) == set()
    assert now_s[0] <= TRIAL_S + 2
    assert engine.is_closed
