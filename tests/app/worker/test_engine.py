"""The engine in a real child, asked over the protocol."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import ErrorInfo
from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, LoadMode, Settings
from app.domain.trial import Workload
from app.rig.planner import plan_with
from app.rig.process import Final, Launch, WorkerProcess, drain, start_worker
from app.worker import protocol
from tests.fakes.demo import demo_spec
from tests.fakes.model_tables import Value
from tests.fakes.models import TINY_ARCHS, make_model

pytestmark = pytest.mark.engine

SMALL = Settings(n_gpu_layers=0, n_ctx=512, n_threads=1, load_mode=LoadMode.NONE)
WORK = Workload(n_prompt=16, n_gen=8)
WINDOWED: dict[str, Value] = {"gemma3.attention.sliding_window": 32}
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    process = drain(start_worker(Launch()))
    yield process
    process.close()


def ask(worker: WorkerProcess, request: protocol.Message) -> tuple[Final, list[protocol.Reply]]:
    exchange = worker.ask(request, "test", lambda _: PATIENCE_S)
    seen: list[protocol.Reply] = []
    while True:
        try:
            reply = next(exchange)
        except StopIteration as stop:
            return stop.value, seen
        if reply is not None:
            seen.append(reply)


def load(worker: WorkerProcess, path: Path | str, settings: Settings = SMALL) -> Settings:
    reply, _ = ask(worker, protocol.Load(model_path=str(path), settings=settings))
    assert isinstance(reply, protocol.LoadFinished), reply
    return reply.effective


def trial(
    worker: WorkerProcess, settings: Settings = SMALL, work: Workload = WORK
) -> tuple[Final, protocol.TrialStarted | None]:
    request = protocol.RunTrial(settings=settings, workload=work, min_reps=2, max_reps=2, max_s=1)
    reply, seen = ask(worker, request)
    return reply, next((r for r in seen if isinstance(r, protocol.TrialStarted)), None)


def generate(
    worker: WorkerProcess, text: str, settings: Settings = SMALL, **fields: object
) -> tuple[protocol.GenerateFinished, str, protocol.GenerateStarted]:
    request = protocol.Generate(
        settings=settings,
        messages=(protocol.ChatMessage(role="user", content=text),),
        sampling=protocol.Sampling(temperature=0),
    )
    reply, seen = ask(worker, msgspec.structs.replace(request, **fields))
    assert isinstance(reply, protocol.GenerateFinished), reply
    words = "".join(r.text for r in seen if isinstance(r, protocol.Token))
    return reply, words, next(r for r in seen if isinstance(r, protocol.GenerateStarted))


def planned(
    worker: WorkerProcess, path: Path | str, settings: Settings
) -> tuple[DeviceMemory, ...]:
    answer = plan_with(worker, str(path), settings)
    assert not isinstance(answer, ErrorInfo), answer
    return answer


def failed(reply: Final) -> protocol.Failed:
    assert isinstance(reply, protocol.Failed), reply
    return reply


# --- hello, load, dry run --------------------------------------------------------------------


def test_hello_names_the_build(worker: WorkerProcess) -> None:
    """Version, commit and backends are known before anything is loaded."""
    engine = worker.engine
    assert engine
    assert {"CPU", "RPC"} <= set(engine.backends)
    assert engine.devices == ()
    assert engine.llama_version


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"n_ctx": 4096, "type_k": "q8_0", "type_v": "q8_0"},
        {"n_ctx": 2000, "n_ubatch": 128, "flash_attn": FlashAttn.OFF},
        {"n_ctx": 2048, "n_seq_max": 4},
    ],
)
def test_dry_run_of_the_demo_model_is_exact(
    worker: WorkerProcess, changes: dict[str, object]
) -> None:
    """What the dry run says is what a real context allocates, to the byte."""
    settings = msgspec.structs.replace(SMALL, **changes)
    path = demo_spec().path
    before = planned(worker, path, settings)
    load(worker, path, settings)
    _, started = trial(worker, settings)
    assert started
    assert started.devices == before


@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_tiny_models_plan_load_and_decode(worker: WorkerProcess, tmp_path: Path, arch: str) -> None:
    """Every architecture: exact dry run, and a trial at depth with its state restored."""
    path = make_model(tmp_path / "tiny.gguf", arch)
    before = planned(worker, path, SMALL)
    load(worker, path)
    reply, started = trial(worker, work=msgspec.structs.replace(WORK, depth=40))
    assert isinstance(reply, protocol.TrialFinished), reply
    assert started
    assert started.devices == before
    assert [s.n_tok for s in reply.prefill] == [16, 16]
    assert [s.n_tok for s in reply.decode] == [8, 8]


def test_effective_settings_are_concrete(worker: WorkerProcess, tmp_path: Path) -> None:
    """Automatic, too large and unrounded values come back as the engine took them."""
    path = make_model(tmp_path / "tiny.gguf")
    asked = Settings(
        n_gpu_layers=0, n_cpu_moe=3, n_ctx=600, n_batch=4096, flash_attn=FlashAttn.AUTO
    )
    reply, _ = ask(worker, protocol.DryRun(model_path=str(path), settings=asked))
    assert isinstance(reply, protocol.DryRunFinished)
    effective = reply.effective
    assert effective
    assert effective.n_cpu_moe == 0
    assert effective.n_ctx == 768
    assert effective.n_batch == 600
    assert effective.flash_attn is FlashAttn.ON
    assert effective.n_threads >= 1
    assert effective.n_threads_batch == effective.n_threads


def test_layers_without_a_device_are_none(worker: WorkerProcess, tmp_path: Path) -> None:
    """Nothing can be offloaded where there is nothing to offload to."""
    settings = msgspec.structs.replace(SMALL, n_gpu_layers=99)
    assert load(worker, make_model(tmp_path / "tiny.gguf"), settings).n_gpu_layers == 0


def test_unknown_device_is_named(worker: WorkerProcess, tmp_path: Path) -> None:
    """A device that the engine does not have is refused, not ignored."""
    path = str(make_model(tmp_path / "tiny.gguf"))
    settings = msgspec.structs.replace(SMALL, devices=("CUDA7",))
    reply = failed(ask(worker, protocol.Load(model_path=path, settings=settings))[0])
    assert reply.error.code == "unknown_device"
    assert "CUDA7" in reply.error.message


@pytest.mark.parametrize(
    ("content", "outcome", "code"),
    [
        (None, Outcome.LOAD_FAILED, "file_not_found"),
        (b"", Outcome.LOAD_FAILED, "load_failed"),
        (b"GGUF garbage that is no model", Outcome.LOAD_FAILED, "load_failed"),
    ],
)
def test_file_that_is_no_model(
    worker: WorkerProcess, tmp_path: Path, content: bytes | None, outcome: Outcome, code: str
) -> None:
    """A missing, empty or foreign file fails the load and leaves the child alive."""
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    reply = failed(ask(worker, protocol.Load(model_path=str(path), settings=SMALL))[0])
    assert (reply.outcome, reply.error.code) == (outcome, code)
    assert worker.can_be_reused()


def test_reason_of_an_abort_gets_out(tmp_path: Path) -> None:
    """When ggml aborts, its message arrives before the process dies."""
    extra: dict[str, Value] = {"llama.block_count": 100_000}
    path = make_model(tmp_path / "hostile.gguf", extra=extra)
    process = drain(start_worker(Launch()))
    try:
        reply = failed(ask(process, protocol.Load(model_path=str(path), settings=SMALL))[0])
        assert reply.outcome is Outcome.CRASHED
        assert reply.error.code == "engine_abort"
        assert "GGML_ASSERT" in reply.error.message
        assert not process.can_be_reused()
    finally:
        process.close()


def test_quantised_v_needs_flash_attention(worker: WorkerProcess, tmp_path: Path) -> None:
    """The engine's refusal arrives as ``unsupported`` with a next step."""
    path = make_model(tmp_path / "tiny.gguf")
    settings = msgspec.structs.replace(SMALL, flash_attn=FlashAttn.OFF, type_v="q8_0")
    answer = plan_with(worker, str(path), settings)
    assert isinstance(answer, ErrorInfo)
    assert answer.code == "needs_flash_attn"
    load(worker, path)
    reply = failed(trial(worker, settings)[0])
    assert reply.outcome is Outcome.UNSUPPORTED


def test_dry_run_ignores_what_it_cannot_allocate(worker: WorkerProcess) -> None:
    """A context far beyond RAM is planned without being tried."""
    settings = msgspec.structs.replace(SMALL, n_ctx=1 << 24)
    assert planned(worker, demo_spec().path, settings)[-1].total_bytes > 1 << 36


# --- trial -----------------------------------------------------------------------------------


def test_parallel_sequences_count_tokens_per_sequence(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """Four sequences take their steps together; a sample counts one of them."""
    load(worker, make_model(tmp_path / "tiny.gguf"))
    settings = msgspec.structs.replace(SMALL, n_ctx=1024, n_seq_max=4)
    reply, _ = trial(worker, settings, msgspec.structs.replace(WORK, n_seq=4, depth=20))
    assert isinstance(reply, protocol.TrialFinished), reply
    assert {s.n_tok for s in reply.prefill} == {16}
    assert {s.n_tok for s in reply.decode} == {8}


@pytest.mark.parametrize(
    ("workload", "code"),
    [
        ({"n_prompt": 600}, "context_too_small"),
        ({"depth": 500}, "context_too_small"),
        ({"n_seq": 2}, "too_few_sequences"),
    ],
)
def test_workload_that_does_not_fit_the_context(
    worker: WorkerProcess, tmp_path: Path, workload: dict[str, int], code: str
) -> None:
    """It is refused before anything is timed."""
    load(worker, make_model(tmp_path / "tiny.gguf"))
    assert (
        failed(trial(worker, work=msgspec.structs.replace(WORK, **workload))[0]).error.code == code
    )


def test_trial_needs_a_model() -> None:
    """A trial without loaded weights is refused."""
    process = drain(start_worker(Launch()))
    try:
        assert failed(trial(process)[0]).error.code == "not_loaded"
    finally:
        process.close()


def test_damaged_weights_are_found(worker: WorkerProcess, tmp_path: Path) -> None:
    """A file of the right shape with values that are not numbers is not measured."""
    path = make_model(tmp_path / "tiny.gguf", tensor_type="F16")
    data = bytearray(path.read_bytes())
    data[-20_000:] = b"\xff" * 20_000
    path.write_bytes(data)
    load(worker, path)
    assert failed(trial(worker)[0]).error.code == "nan_logits"


# --- generate --------------------------------------------------------------------------------


def test_base_model_completes_text(worker: WorkerProcess) -> None:
    """Without a template the text is completed, and the reply says so."""
    load(worker, demo_spec().path)
    finished, text, started = generate(worker, "One, two, three, four,", max_tokens=4)
    assert started.template == "text"
    assert "five" in text
    assert finished.reason == "length"
    assert finished.n_gen == 4
    assert finished.ttft_ns
    assert finished.decode_ns > 0


def test_stop_string_ends_the_answer(worker: WorkerProcess) -> None:
    """The answer ends before the stop string."""
    load(worker, demo_spec().path)
    finished, text, _ = generate(worker, "One, two, three, four,", max_tokens=20, stop=(" six",))
    assert finished.reason == "stop"
    assert text.rstrip().endswith("five,")


def test_own_template_is_used(worker: WorkerProcess, tmp_path: Path) -> None:
    """A model with a template gets the conversation as that writes it."""
    load(worker, make_model(tmp_path / "chat.gguf", chat_template=TEMPLATE))
    _, _, started = generate(worker, "abc", max_tokens=1)
    reply, _ = ask(worker, protocol.Tokenize(text="<user>abc<assistant>"))
    assert started.template == "model"
    assert isinstance(reply, protocol.TokenizeFinished)
    assert started.n_prompt == reply.n_tok


def test_template_that_refuses_a_system_message(worker: WorkerProcess, tmp_path: Path) -> None:
    """The system message then goes before the first question."""
    picky = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" + TEMPLATE
    load(worker, make_model(tmp_path / "chat.gguf", chat_template=picky))
    talk = (
        protocol.ChatMessage(role="system", content="s"),
        protocol.ChatMessage(role="user", content="u"),
    )
    _, _, started = generate(worker, "", messages=talk, max_tokens=1)
    reply, _ = ask(worker, protocol.Tokenize(text="<user>s\n\nu<assistant>"))
    assert isinstance(reply, protocol.TokenizeFinished)
    assert started.n_prompt == reply.n_tok


def test_template_cannot_leave_its_sandbox(worker: WorkerProcess, tmp_path: Path) -> None:
    """A hostile template is an error of the request, nothing more."""
    hostile = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    load(worker, make_model(tmp_path / "chat.gguf", chat_template=hostile))
    request = protocol.Generate(
        settings=SMALL, messages=(protocol.ChatMessage(role="user", content="x"),)
    )
    assert failed(ask(worker, request)[0]).error.code == "chat_template"
    assert worker.can_be_reused()


def test_full_context_ends_the_answer(worker: WorkerProcess, tmp_path: Path) -> None:
    """The context's end is reported, for the answer as for the question."""
    load(worker, make_model(tmp_path / "tiny.gguf"))
    small = msgspec.structs.replace(SMALL, n_ctx=256)
    finished, _, _ = generate(worker, "a" * 100, small)
    assert finished.reason in {"context_full", "stop"}
    finished, text, started = generate(worker, "a " * 400, small)
    assert (finished.reason, text, finished.n_gen) == ("context_full", "", 0)
    assert started.n_prompt > 256


@pytest.mark.parametrize(
    ("arch", "n_tail", "is_reused"),
    [
        ("llama", 80, True),
        ("gemma3", 5, True),  # the window before the change is still there
        ("gemma3", 80, False),  # it has been overwritten
        ("mamba", 5, False),
        ("jamba", 5, False),
    ],
)
def test_prefix_is_reused_only_where_that_is_right(
    worker: WorkerProcess, tmp_path: Path, arch: str, n_tail: int, is_reused: bool
) -> None:
    """A changed ending gives the same answer as a fresh context, whether re-used or not."""
    extra = WINDOWED if arch == "gemma3" else {}
    load(worker, make_model(tmp_path / "tiny.gguf", arch, extra=extra))
    settings = msgspec.structs.replace(SMALL, n_ctx=2048, n_batch=256, n_ubatch=32)
    shared = "the in er an " * 60
    generate(worker, shared + "abcdef " * n_tail, settings, max_tokens=1)
    second, text, _ = generate(worker, shared + "xyz", settings, max_tokens=12)
    assert (second.n_reused > 0) == is_reused
    other = msgspec.structs.replace(settings, n_ctx=1792)
    fresh, expected, _ = generate(worker, shared + "xyz", other, max_tokens=12)
    assert fresh.n_reused == 0
    assert text == expected


def test_growing_conversation_reuses_everything(worker: WorkerProcess, tmp_path: Path) -> None:
    """Appending to what is cached is valid for every architecture."""
    load(worker, make_model(tmp_path / "tiny.gguf", "mamba"))
    settings = msgspec.structs.replace(SMALL, n_ctx=2048)
    first, _, _ = generate(worker, "the in er an", settings, max_tokens=1)
    second, _, _ = generate(worker, "the in er an the", settings, max_tokens=1)
    assert second.n_reused == first.n_prompt
