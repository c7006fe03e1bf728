"""``rigtune inspect``: what a model file says about itself."""

import argparse
from collections import Counter

from app.cli.output import EXIT_DONE, human, print_json, table
from app.domain.model import ModelSpec
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.units import KIB, MISSING, counted, format_bytes
from app.estimate.kv import kv_bytes_per_token
from app.estimate.profile import EngineProfile
from app.session import Session

NAME = "inspect"
HELP = "show what a GGUF model needs and contains"


F16 = Settings(n_gpu_layers=0)
# until the window is full, sliding-window layers grow like the others
ALL_LAYERS = EngineProfile(swa_full=True)


class Split(Record, frozen=True, kw_only=True):
    """Place of the file among its shards."""

    index: int
    count: int


class ModelDocument(Record, frozen=True, kw_only=True):
    """``rigtune.model/1``."""

    schema: str = "rigtune.model/1"
    arch: str
    name: str
    kind: str
    n_layer: int
    n_embd: int
    n_head: int | list[int]
    n_head_kv: int | list[int]
    n_vocab: int
    n_ctx_train: int | None
    n_expert: int
    n_expert_used: int
    sliding_window: int
    file_bytes: int
    weights_bytes: int
    kv_bytes_per_token: int | None
    tensor_types: dict[str, int]
    chat_template: bool
    split: Split
    fingerprint: str
    problems: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="path, id from `models`, or demo")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print the model."""
    spec = session.inspect(args.model)
    document = document_of(spec)
    if args.json:
        print_json(document)
    else:
        show(spec, document)
    return EXIT_DONE


def document_of(spec: ModelSpec) -> ModelDocument:
    """Return the JSON view of a model."""
    return ModelDocument(
        arch=spec.arch,
        name=spec.name,
        kind=spec.kind,
        n_layer=spec.n_layer,
        n_embd=spec.n_embd,
        n_head=_uniform(spec.n_head),
        n_head_kv=_uniform(spec.n_head_kv),
        n_vocab=spec.n_vocab,
        n_ctx_train=spec.n_ctx_train,
        n_expert=spec.n_expert,
        n_expert_used=spec.n_expert_used,
        sliding_window=spec.n_swa,
        file_bytes=spec.file_bytes,
        weights_bytes=spec.weights_bytes,
        kv_bytes_per_token=kv_bytes_per_token(spec, F16, ALL_LAYERS),
        tensor_types=dict(Counter(t.type for t in spec.tensors).most_common()),
        chat_template=spec.chat_template is not None,
        split=Split(index=spec.split_index, count=spec.split_count),
        fingerprint=spec.fingerprint,
        problems=spec.problems,
    )


def show(spec: ModelSpec, document: ModelDocument) -> None:
    """Print the model as text."""
    experts = (
        f", {counted(spec.n_expert, 'expert')} ({spec.n_expert_used} used)" if spec.n_expert else ""
    )
    window = f", sliding window {spec.n_swa}" if spec.n_swa else ""
    types = ", ".join(f"{n} {name}" for name, n in document.tensor_types.items())
    rows = [
        ["Model", f"{spec.name} ({spec.arch}{experts}{window})"],
        ["Layers", f"{counted(spec.n_layer, 'block')} + output"],
        ["Context trained for", f"{spec.n_ctx_train:,} tokens" if spec.n_ctx_train else "—"],
        ["File", f"{format_bytes(spec.file_bytes)} in {counted(spec.split_count, 'file')}"],
        ["Weights", format_bytes(spec.weights_bytes)],
        ["KV cache per token (f16)", _kv_text(spec, document.kv_bytes_per_token)],
        ["Vocabulary", f"{spec.n_vocab:,} words"],
        ["Tensor types", types],
        ["Chat template", "yes" if document.chat_template else "none: completes plain text"],
    ]
    console = human()
    grid = table(["", ""], rows)
    grid.columns[1].justify = "left"
    grid.columns[1].no_wrap = False
    grid.show_header = False
    console.print(grid)
    for problem in spec.problems:
        console.print(f"Note: {problem}", markup=False)


def _uniform(per_layer: tuple[int, ...]) -> int | list[int]:
    """One number where all layers agree, else the list."""
    return per_layer[0] if len(set(per_layer)) == 1 else list(per_layer)


def _kv_text(spec: ModelSpec, n_bytes: int | None) -> str:
    if n_bytes is None:
        return MISSING
    beyond = kv_bytes_per_token(spec, F16)
    text = f"{n_bytes / KIB:.1f}\u00a0KiB"
    if beyond is None or beyond == n_bytes:
        return text
    return f"{text}, {beyond / KIB:.1f}\u00a0KiB beyond the sliding window"
