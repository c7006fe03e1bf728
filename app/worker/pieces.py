"""Tells the parts of an answer apart: what is thought, what is said, what calls a tool."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.worker.detokenize import overlap

ANSWER, REASONING, TOOL_CALL = "answer", "reasoning", "tool_call"
_SKIP = "skip"


class Marker(NamedTuple):
    """What opens and closes a part; ``close`` empty = nothing does, it goes on to the end.

    Attributes:
        kind: ``reasoning``, ``tool_call``; ``answer`` and ``skip`` for words between parts.
        open: Text before the part.
        close: Text after it.
        first: Whether it only counts before anything was said (a model may talk about it later).
    """

    kind: str
    open: str
    close: str
    first: bool = False


# Of the templates that come with llama.cpp (models/templates) and its parsers (common/chat.cpp).
MARKERS = (
    Marker(REASONING, "<think>", "</think>", first=True),
    Marker(REASONING, "<thinking>", "</thinking>", first=True),
    Marker(REASONING, "<think:opensource>", "</think:opensource>", first=True),
    Marker(REASONING, "<mm:think>", "</mm:think>", first=True),
    Marker(REASONING, "<seed:think>", "</seed:think>", first=True),
    Marker(REASONING, "[THINK]", "[/THINK]", first=True),
    Marker(REASONING, "◁think▷", "◁/think▷", first=True),
    Marker(REASONING, "<|START_THINKING|>", "<|END_THINKING|>"),
    Marker(REASONING, "<|inner_prefix|>", "<|inner_suffix|>"),
    Marker(REASONING, "<|channel>thought\n", "<channel|>"),
    Marker(REASONING, "<|channel|>analysis<|message|>", "<|end|>"),
    Marker(TOOL_CALL, "<|channel|>commentary to=", "<|call|>"),
    Marker(REASONING, "<|channel|>commentary<|message|>", "<|end|>"),
    Marker(_SKIP, "<|start|>assistant", ""),
    Marker(_SKIP, "<|channel|>final<|message|>", ""),
    Marker(TOOL_CALL, "<tool_call>", "</tool_call>"),
    Marker(TOOL_CALL, "<tool_calls>", "</tool_calls>"),
    Marker(TOOL_CALL, "<TOOLCALL>", "</TOOLCALL>"),
    Marker(TOOL_CALL, "<|tool_call>", "<tool_call|>"),
    Marker(TOOL_CALL, "<|tool_call_start|>", "<|tool_call_end|>"),
    Marker(TOOL_CALL, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    Marker(TOOL_CALL, "<\uff5ctool▁calls▁begin\uff5c>", "<\uff5ctool▁calls▁end\uff5c>"),
    Marker(TOOL_CALL, "<|START_ACTION|>", "<|END_ACTION|>"),
    Marker(TOOL_CALL, "<|tools_prefix|>", "<|tools_suffix|>"),
    Marker(TOOL_CALL, "[TOOL_CALLS]", ""),
    Marker(TOOL_CALL, "<|python_tag|>", ""),
    Marker(TOOL_CALL, "<function=", "</function>"),
)


def markers_of(template: str) -> tuple[Marker, ...]:
    """Return the markers a chat template knows; words it does not know are plain text."""
    return tuple(
        m
        for m in MARKERS
        if m.open in template
        or (m.close and m.close in template)
        or (m.kind == _SKIP and "<|channel|>" in template)
    )


def open_marker(markers: Sequence[Marker], prompt_end: str) -> Marker | None:
    """Return the reasoning that the end of a prompt begins, if it does."""
    best, best_at = None, -1
    for marker in markers:
        at = prompt_end.rfind(marker.open.rstrip())
        closed = prompt_end.rfind(marker.close) if marker.close else -1
        if marker.kind == REASONING and at > max(closed, best_at):
            best, best_at = marker, at
    return best


class Pieces:
    """Cuts the text of one answer into pieces of one kind each, as it comes."""

    def __init__(self, markers: Sequence[Marker] = (), inside: Marker | None = None) -> None:
        """Begin in the answer, or ``inside`` a part that the prompt has opened."""
        self._markers = markers
        self._inside = inside
        self._held = ""
        # white space around markers is part of no piece
        self._is_fresh = inside is not None or any(m.first for m in markers)
        self._has_said = False

    def feed(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield ``(kind, text)`` for what is certain now."""
        if not self._markers:
            yield ANSWER, text
            return
        text = self._held + text
        self._held = ""
        while text:
            at, marker, length = self._next_border(text)
            if marker is None and at < len(text):
                self._held = text[at:]
            yield from self._emit(text[:at])
            if marker is None:
                return
            yield from self._cross(marker, text[at : at + length])
            text = text[at + length :]

    def finish(self) -> Iterator[tuple[str, str]]:
        """Yield what was held back, at the end of the answer."""
        rest, self._held = self._held, ""
        yield from self._emit(rest)

    def _next_border(self, text: str) -> tuple[int, Marker | None, int]:
        """Return where the next part begins, or how much of ``text`` certainly has no border."""
        if self._inside is not None:
            sought = self._inside.close
            if not sought:
                return len(text), None, 0
            at = text.find(sought)
            if at >= 0:
                return at, self._inside, len(sought)
            return len(text) - overlap(text, sought), None, 0
        found: tuple[int, Marker | None, int] = (len(text), None, 0)
        keep = 0
        for marker in self._markers:
            if marker.first and self._has_said:
                continue
            at = text.find(marker.open)
            if marker.first and text[: max(at, 0)].strip():
                continue
            if 0 <= at < found[0]:
                found = at, marker, len(marker.open)
            keep = max(keep, overlap(text, marker.open))
        return found if found[1] else (len(text) - keep, None, 0)

    def _cross(self, marker: Marker, words: str) -> Iterator[tuple[str, str]]:
        is_closing = self._inside is not None
        if marker.kind == TOOL_CALL:
            # its markers stay: they are what the model said, and the next prompt needs them
            yield TOOL_CALL, words
            self._has_said = True
        self._is_fresh = marker.kind != TOOL_CALL
        self._inside = None if is_closing or marker.kind == _SKIP else marker

    def _emit(self, text: str) -> Iterator[tuple[str, str]]:
        kind = self._inside.kind if self._inside else ANSWER
        if self._is_fresh:
            text = text.lstrip()
        if not text:
            return
        self._is_fresh = False
        if kind == ANSWER and text.strip():
            self._has_said = True
        yield kind, text
