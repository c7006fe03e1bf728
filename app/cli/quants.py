"""``rigtune tune A B …``: the answers for several models in one table, and which to use."""

from app.cli.output import escape, human, table
from app.cli.progress import summary
from app.cli.tune_document import EngineView, TuneDocument, document_of, engine_view
from app.cli.tune_text import format_rate
from app.domain.errors import ErrorInfo
from app.domain.machine import Machine
from app.domain.model import ModelSpec
from app.domain.record import Record
from app.domain.sweep import Recommended, SweepResult
from app.domain.units import MISSING, format_bytes, format_seconds

SAME_MODEL_PARTS = ("arch", "n_layer", "n_embd", "n_vocab")
READING_TOK_S = 10.0  # slower than this is slower than people read


class Entry(Record, frozen=True, kw_only=True):
    """One model and what came of its search."""

    model: str
    spec: ModelSpec | None = None
    result: SweepResult | None = None
    error: ErrorInfo | None = None

    @property
    def answer(self) -> Recommended | None:
        """The recommendation, if there is one."""
        return self.result.recommended if self.result else None


class QuantView(Record, frozen=True, kw_only=True):
    """One model of the comparison.

    Attributes:
        model: As the user named it.
        name: Name in the file.
        quant: File type such as ``Q4_K_M``.
        file_bytes: Size of all its files.
        bits_per_weight: Size of the weights over their number: the measure of quality here.
        meets_floor: Whether decode stays above the floor with the goal's request.
        result: The whole ``rigtune.tune/1`` document.
        error: Why there is no result.
    """

    model: str
    name: str | None = None
    quant: str | None = None
    file_bytes: int | None = None
    bits_per_weight: float | None = None
    meets_floor: bool | None = None
    result: TuneDocument | None = None
    error: ErrorInfo | None = None


class QuantsDocument(Record, frozen=True, kw_only=True):
    """``rigtune.quants/1``.

    Attributes:
        models: Every model, in the order given.
        fastest: Index of the one with the shortest request.
        best: Index of the one to use: the most bits per weight that still meets the floor;
            ``None`` where the files are not quantisations of one model.
        floor_tok_s: The floor that ``best`` had to meet.
        same_model: Whether the files look like quantisations of one model.
        engine: Build everything was measured with.
    """

    schema: str = "rigtune.quants/1"
    models: tuple[QuantView, ...]
    fastest: int | None
    best: int | None
    floor_tok_s: float
    same_model: bool
    engine: EngineView | None


def comparison_of(
    entries: list[Entry], machine: Machine | None, floor_tok_s: float | None = None
) -> QuantsDocument:
    """Return the comparison; the floor is 10 tok/s where the user named none."""
    floor = READING_TOK_S if floor_tok_s is None else floor_tok_s
    views = tuple(view_of(entry, machine, floor) for entry in entries)
    answered = [i for i, e in enumerate(entries) if e.answer and e.answer.request_s is not None]
    specs = [e.spec for e in entries if e.spec is not None]
    same = len({tuple(getattr(s, part) for part in SAME_MODEL_PARTS) for s in specs}) == 1
    good = [i for i in answered if views[i].meets_floor]
    return QuantsDocument(
        models=views,
        fastest=min(answered, key=lambda i: _request_s(entries[i]), default=None),
        best=max(good, key=lambda i: views[i].bits_per_weight or 0, default=None) if same else None,
        floor_tok_s=floor,
        same_model=same,
        engine=engine_view(machine.engine) if machine else None,
    )


def _request_s(entry: Entry) -> float:
    answer = entry.answer
    return float("inf") if answer is None or answer.request_s is None else answer.request_s


def view_of(entry: Entry, machine: Machine | None, floor_tok_s: float) -> QuantView:
    """Return the JSON view of one model."""
    spec, answer = entry.spec, entry.answer
    decode = answer.decode_tok_s if answer else None
    return QuantView(
        model=entry.model,
        name=spec.name if spec else None,
        quant=spec.ftype if spec else None,
        file_bytes=spec.file_bytes if spec else None,
        bits_per_weight=spec.bits_per_weight if spec else None,
        meets_floor=decode.median >= floor_tok_s if decode else None,
        result=document_of(entry.result, machine) if entry.result else None,
        error=entry.error or (entry.result.error if entry.result else None),
    )


def show_comparison(document: QuantsDocument) -> None:
    """Print one table and which of the models to use."""
    console = human()
    headers = ["model", "quant", "size", "bits/weight", "prefill tok/s", "decode tok/s", "request"]
    console.print(table(headers, [_row(view) for view in document.models]))
    for view in document.models:
        answer = view.result.recommended if view.result else None
        if answer is not None:
            profile = f" (profile {answer.profile_id})" if answer.profile_id else ""
            console.print(f"{view.model}: {summary(answer.settings)}{profile}", markup=False)
        elif view.error is not None:
            console.print(f"[red]{escape(view.model)}: {escape(view.error.message)}[/]")
    if document.best is not None:
        best = document.models[document.best]
        console.print(
            f"[bold]Use {escape(best.model)}[/]: the most bits per weight that still writes "
            f"{document.floor_tok_s:g} tok/s."
        )
    elif document.same_model and document.fastest is not None:
        console.print(f"None writes {document.floor_tok_s:g} tok/s.")
    if document.fastest is not None and document.fastest != document.best:
        console.print(f"Fastest: {escape(document.models[document.fastest].model)}.")
    if not document.same_model:
        console.print("These are different models: speed says nothing about which answers better.")


def _row(view: QuantView) -> list[str]:
    answer = view.result.recommended if view.result else None
    bits = view.bits_per_weight
    return [
        view.model,
        view.quant or MISSING,
        format_bytes(view.file_bytes),
        MISSING if bits is None else f"{bits:.2f}",
        format_rate(answer.prefill_tok_s if answer else None),
        format_rate(answer.decode_tok_s if answer else None),
        format_seconds(answer.request_s if answer else None),
    ]
