"""What a GGUF file is for, and what is odd about it."""

from app.domain.errors import EnvironmentProblem
from app.domain.model import TensorInfo
from app.gguf.architectures import (
    DIFFUSION_ARCHS,
    DRAFT_ARCHS,
    ENCODER_ARCHS,
    FORMULA_ARCHS,
    KNOWN_ARCHS,
    SPEECH_ARCHS,
    TWO_PART_ARCHS,
)
from app.gguf.header import Header
from app.gguf.layers import Layers, Shape
from app.gguf.metadata import Metadata
from app.gguf.source import display_name

TEXT = "text"
EMBEDDING = "embedding"
PROJECTOR = "projector"
ADAPTER = "adapter"
VOCABULARY = "vocabulary"
DRAFT = "draft"
SPEECH = "speech"

_POOLING_TYPES = range(1, 5)
"""Mean, CLS, last, rank (``llama_pooling_type``); 0 is none and anything else unspecified."""

_TEMPLATE = "tokenizer.chat_template"


def read_architecture(header: Header) -> str:
    """Return ``general.architecture``.

    Raises:
        EnvironmentProblem: There is none, or the file holds something else than a model.
    """
    arch = header.metadata.text("general.architecture")
    kind = header.metadata.text("general.type")
    if kind in {"imatrix", "dataset"}:
        raise EnvironmentProblem(
            "gguf_not_a_model",
            f"{display_name(header.path)} is no model: its type is '{kind}'.",
            "Choose the model's own .gguf file.",
        )
    if not arch:
        raise EnvironmentProblem(
            "gguf_missing_key",
            f"{display_name(header.path)} does not say what model it is: "
            f"'general.architecture' is missing.",
            "Convert or download the model again.",
        )
    return arch


def read_kind(arch: str, metadata: Metadata, tensors: tuple[TensorInfo, ...]) -> str:
    """Return what the file is for: ``ModelSpec.kind``."""
    stated = metadata.string("general.type")
    if stated == "adapter" or "adapter.type" in metadata:
        return ADAPTER
    if arch == "clip" or stated in {"mmproj", "clip-vision"}:
        return PROJECTOR
    if not tensors:
        return VOCABULARY
    if arch in DRAFT_ARCHS or _has_no_trunk(arch, metadata):
        return DRAFT
    if arch in SPEECH_ARCHS:
        return SPEECH
    pools = (metadata.integer(f"{arch}.pooling_type") or 0) in _POOLING_TYPES
    one_way = metadata.boolean(f"{arch}.attention.causal")
    if arch in ENCODER_ARCHS or pools or (one_way is False and arch not in DIFFUSION_ARCHS):
        return EMBEDDING
    return TEXT


def has_first_block(shape: Shape) -> bool:
    """Return whether the weights of block 0 are there."""
    return 0 in shape.layer_tensors


def is_formula_known(shape: Shape, kind: str) -> bool:
    """Return whether caches and state of this model follow the formulas."""
    return kind in {TEXT, EMBEDDING} and shape.arch in FORMULA_ARCHS and has_first_block(shape)


def find_problems(shape: Shape, kind: str, layers: Layers) -> tuple[str, ...]:
    """Return a sentence for each oddity that does not prevent reading the model."""
    if kind == VOCABULARY:
        return ("This file holds a tokenizer only, no weights; it cannot be run.",)
    if kind == PROJECTOR:
        return ("This is a vision or audio projector; it needs a text model beside it.",)
    if kind == ADAPTER:
        return ("This is a LoRA adapter; it needs its base model.",)
    if kind == DRAFT:
        return ("This is a draft model: it guesses words for the model it was made for.",)
    if kind == SPEECH:
        return ("This model makes or encodes speech, not text; it is unsuitable for chat.",)
    return tuple(_model_problems(shape, kind, layers))


def _model_problems(shape: Shape, kind: str, layers: Layers) -> list[str]:
    found = []
    if kind == EMBEDDING:
        found.append("This model gives embeddings (vectors), not text; it is unsuitable for chat.")
    elif _TEMPLATE not in shape.metadata:
        found.append("The file has no chat template: the model completes text instead of chatting.")
    elif shape.metadata.text(_TEMPLATE) is None:
        found.append("The chat template is too long and is ignored.")
    if shape.arch in DIFFUSION_ARCHS:
        found.append("A diffusion language model does not write word by word; chat will not work.")
    if shape.arch in TWO_PART_ARCHS:
        found.append("An encoder-decoder model rewrites a whole text; chat will not work.")
    n_draft = shape.n_layer - shape.n_layer_trunk
    if n_draft:
        found.append(
            f"The last {n_draft} of its layers only draft words (MTP): they are not loaded and "
            "need no memory."
        )
    if shape.arch not in KNOWN_ARCHS:
        found.append(f"The architecture '{shape.arch}' is not known; memory needs a dry run.")
    if not has_first_block(shape):
        found.append("The weights of the first layer (blk.0) are missing; it cannot be estimated.")
    if shape.integer("attention.kv_lora_rank") and _is_mla_missing(shape, layers):
        found.append(
            "The file lacks the MLA metadata: its KV cache is many times larger than needed; "
            "a newer conversion of the model avoids that."
        )
    return found


def _has_no_trunk(arch: str, metadata: Metadata) -> bool:
    n_layer = metadata.integer(f"{arch}.block_count") or 0
    return 0 < n_layer <= (metadata.integer(f"{arch}.nextn_predict_layers") or 0)


def _is_mla_missing(shape: Shape, layers: Layers) -> bool:
    return layers.mla_kv_lora_rank is None and shape.arch == "deepseek2"
