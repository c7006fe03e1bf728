"""What ``read_model`` says about whole files."""

from pathlib import Path

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.model import ModelSpec
from app.gguf.reader import read_model
from tests.fakes.gguf_bytes import (
    BOOL,
    F32,
    STRING,
    U32,
    U64,
    array,
    gguf_file,
    pair,
    small_llama,
    tensor,
)
from tests.fakes.models import CHAT_TEMPLATE, POPULAR, TINY_ARCHS, make_model, sparse_model


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_tiny_models_are_described(tmp_path: Path, arch: str) -> None:
    """Every architecture the tests can build is read whole, as a known text model."""
    spec = read_model(make_model(tmp_path / "m.gguf", arch, n_layer=6))
    assert (spec.arch, spec.kind, spec.formula_known) == (arch, "text", True)
    assert (spec.n_layer, spec.n_embd, spec.n_vocab, spec.n_ctx_train) == (6, 128, 320, 4096)
    assert spec.weights_bytes == sum(t.n_bytes for t in spec.tensors)
    assert len(spec.n_head_kv) == len(spec.n_embd_head_k) == len(spec.swa_layers) == 6
    assert msgspec.json.decode(msgspec.json.encode(spec), type=ModelSpec) == spec


@pytest.mark.parametrize(
    ("name", "file_gib", "weights_mib"),
    [
        ("gpt-oss-20b-MXFP4", 11.27, 11536.18),
        ("gpt-oss-120b-MXFP4", 59.02, 60438.47),
        ("gemma-3-27b-Q4_K_M", 15.404, 15773.9),
        ("gemma-2-2b-Q4_K_M", 1.59, 1623.67),
        ("Qwen3-Coder-30B-A3B-Q8_0", 30.25, 30973.42),
    ],
)
def test_published_shapes_have_the_logged_size(
    tmp_path: Path, name: str, file_gib: float, weights_mib: float
) -> None:
    """Files with real tensor tables weigh what llama.cpp logged for the real ones."""
    spec = read_model(sparse_model(tmp_path / "m.gguf", name))
    assert spec.file_bytes / 2**30 == pytest.approx(file_gib, abs=0.005)
    assert spec.weights_bytes / 2**20 == pytest.approx(weights_mib, abs=0.1)


def test_every_published_shape_is_known(tmp_path: Path) -> None:
    """The sparse models can be read in no time and take no disk space to speak of."""
    for name in POPULAR:
        path = sparse_model(tmp_path / f"{name}.gguf", name)
        spec = read_model(path)
        assert (spec.name, spec.formula_known) == (name, True)
        assert spec.n_vocab > 30_000


def test_experts_are_counted(tmp_path: Path) -> None:
    """Routed and used experts come from the metadata."""
    spec = read_model(make_model(tmp_path / "m.gguf", "qwen3moe", n_expert=8, n_expert_used=2))
    assert (spec.n_expert, spec.n_expert_used) == (8, 2)


def test_chat_template_and_its_absence(tmp_path: Path) -> None:
    """The template is kept whole; a base model is said to have none."""
    chat = read_model(make_model(tmp_path / "a.gguf", chat_template=CHAT_TEMPLATE))
    base = read_model(make_model(tmp_path / "b.gguf"))
    assert chat.chat_template == CHAT_TEMPLATE
    assert chat.problems == ()
    assert base.chat_template is None
    assert "no chat template" in base.problems[0]


def test_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    """Equal bytes have equal fingerprints wherever they lie; other weights have others."""
    one = read_model(make_model(tmp_path / "a.gguf", seed=1))
    same = read_model(make_model(tmp_path / "b.gguf", seed=1))
    other = read_model(make_model(tmp_path / "c.gguf", seed=2))
    assert one.fingerprint == same.fingerprint
    assert one.fingerprint != other.fingerprint
    assert len(one.fingerprint) == 32


def test_projector_is_recognised(tmp_path: Path) -> None:
    """A vision projector is no text model."""
    pairs = [
        pair("general.architecture", STRING, "clip"),
        pair("general.type", STRING, "mmproj"),
        pair("clip.has_vision_encoder", BOOL, True),
    ]
    content = gguf_file(pairs, [tensor("v.blk.0.attn_q.weight", (8, 8))], bytes(256))
    spec = read_model(written(tmp_path, content))
    assert (spec.kind, spec.formula_known, spec.n_layer) == ("projector", False, 1)


def test_adapter_is_recognised(tmp_path: Path) -> None:
    """A LoRA file is no model of its own."""
    pairs = [
        pair("general.architecture", STRING, "llama"),
        pair("general.type", STRING, "adapter"),
        pair("adapter.type", STRING, "lora"),
    ]
    content = gguf_file(pairs, [tensor("blk.3.attn_q.weight.lora_a", (8, 4))], bytes(128))
    spec = read_model(written(tmp_path, content))
    assert (spec.kind, spec.n_layer) == ("adapter", 4)


def test_vocabulary_only_file_is_recognised(tmp_path: Path) -> None:
    """A tokenizer without weights is described, not refused, and divides nothing by zero."""
    pairs = [
        pair("general.architecture", STRING, "llama"),
        pair("llama.block_count", U32, 32),
        pair("llama.embedding_length", U32, 4096),
        array("tokenizer.ggml.tokens", STRING, ["a", "b", "c"]),
    ]
    spec = read_model(written(tmp_path, gguf_file(pairs)))
    assert (spec.kind, spec.n_vocab, spec.weights_bytes) == ("vocabulary", 3, 0)
    assert "tokenizer only" in spec.problems[0]


@pytest.mark.parametrize(
    ("arch", "extra"),
    [
        ("bert", []),
        ("qwen3", [pair("qwen3.pooling_type", U32, 3)]),
        ("llama", [pair("llama.attention.causal", BOOL, False)]),
    ],
)
def test_embedding_models_are_recognised(tmp_path: Path, arch: str, extra: list[bytes]) -> None:
    """Encoders and models that pool give vectors; the spec says unsuitable for chat."""
    spec = read_model(written(tmp_path, small_llama(extra, arch=arch)))
    assert spec.kind == "embedding"
    assert "unsuitable for chat" in spec.problems[0]


@pytest.mark.parametrize(
    ("arch", "extra", "kind", "words"),
    [
        ("eagle3", [], "draft", "draft model"),
        ("qwen3", [pair("qwen3.nextn_predict_layers", U32, 1)], "draft", "draft model"),
        ("wavtokenizer-dec", [], "speech", "unsuitable for chat"),
        ("t5", [], "text", "chat will not work"),
    ],
)
def test_other_purposes_are_said(
    tmp_path: Path, arch: str, extra: list[bytes], kind: str, words: str
) -> None:
    """Draft heads, files of draft layers only, speech and encoder-decoder models."""
    spec = read_model(written(tmp_path, small_llama(extra, arch=arch)))
    assert spec.kind == kind
    assert any(words in sentence for sentence in spec.problems)


def test_draft_layers_beside_others_are_said(tmp_path: Path) -> None:
    """A model with draft layers at its end is a text model; they need no memory."""
    extra = [pair("qwen3.nextn_predict_layers", U32, 1)]
    spec = read_model(written(tmp_path, small_llama(extra, arch="qwen3", n_layer=2)))
    assert spec.kind == "text"
    assert any("(MTP)" in sentence for sentence in spec.problems)


def test_unspecified_pooling_is_no_embedding(tmp_path: Path) -> None:
    """Pooling types 0 (none) and -1 (unspecified) leave a text model."""
    for value in (0, 0xFFFFFFFF):
        content = small_llama([pair("llama.pooling_type", U32, value)])
        assert read_model(written(tmp_path, content)).kind == "text"


def test_model_without_first_block_cannot_be_estimated(tmp_path: Path) -> None:
    """Missing blk.0 is a problem of the file, not an exception."""
    pairs = [
        pair("general.architecture", STRING, "llama"),
        pair("llama.block_count", U32, 0),
        pair("llama.context_length", U32, 2048),
        pair("llama.embedding_length", U32, 8),
    ]
    content = gguf_file(pairs, [tensor("token_embd.weight", (8, 4))], bytes(128))
    spec = read_model(written(tmp_path, content))
    assert (spec.n_layer, spec.formula_known) == (0, False)
    assert any("blk.0" in problem for problem in spec.problems)


def test_unknown_architecture_keeps_exact_weights(tmp_path: Path) -> None:
    """Nobody's architecture: weights and layers from the tensor table, no formula."""
    pairs = [pair("general.architecture", STRING, "brandnew")]
    tensors = [tensor(f"blk.{il}.w", (8,), offset=il * 32) for il in range(3)]
    spec = read_model(written(tmp_path, gguf_file(pairs, tensors, bytes(96))))
    assert (spec.n_layer, spec.weights_bytes, spec.formula_known) == (3, 96, False)
    assert any("not known" in problem for problem in spec.problems)


def test_special_caches_are_not_guessed(tmp_path: Path) -> None:
    """An architecture with caches of its own asks for the dry run."""
    spec = read_model(written(tmp_path, small_llama(arch="deepseek32")))
    assert (spec.kind, spec.formula_known) == ("text", False)


REFUSED: dict[str, tuple[bytes, str]] = {
    "no architecture": (gguf_file([pair("a", U32, 1)]), "gguf_missing_key"),
    "architecture is a number": (
        gguf_file([pair("general.architecture", U32, 1)]),
        "gguf_key_type",
    ),
    "importance matrix": (
        gguf_file([pair("general.type", STRING, "imatrix")]),
        "gguf_not_a_model",
    ),
    "no block count": (
        gguf_file(
            [pair("general.architecture", STRING, "llama")],
            [tensor("blk.0.w", (8,))],
            bytes(32),
        ),
        "gguf_missing_key",
    ),
    "expert count is text": (
        small_llama([pair("llama.expert_count", STRING, "8")]),
        "gguf_key_type",
    ),
    "expert count is a fraction": (
        small_llama([pair("llama.expert_count", F32, 8.0)]),
        "gguf_key_type",
    ),
    "heads of another layer count": (
        small_llama([array("llama.attention.head_count_kv", U32, [1, 2, 3])]),
        "gguf_bad_value",
    ),
    "heads are words": (
        small_llama([array("llama.attention.head_count_kv", STRING, ["1"])]),
        "gguf_key_type",
    ),
    "a width the words do not have": (
        gguf_file(
            [
                pair("general.architecture", STRING, "llama"),
                pair("llama.block_count", U32, 1),
                pair("llama.embedding_length", U32, 0xFFFFFFFF),
            ],
            [tensor("token_embd.weight", (8, 4))],
            bytes(128),
        ),
        "gguf_bad_value",
    ),
    "too many layers": (
        gguf_file(
            [
                pair("general.architecture", STRING, "llama"),
                pair("llama.block_count", U64, 100_000),
                pair("llama.embedding_length", U32, 8),
            ],
            [tensor("blk.0.w", (8,))],
            bytes(32),
        ),
        "gguf_bad_value",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_contradicting_metadata_is_refused(tmp_path: Path, name: str) -> None:
    """Missing, mistyped and impossible values name the key and the file."""
    content, code = REFUSED[name]
    with pytest.raises(EnvironmentProblem) as caught:
        read_model(written(tmp_path, content))
    assert caught.value.info.code == code
    assert "model.gguf" in caught.value.info.message
