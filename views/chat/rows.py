"""The rows a transcript is made of: cheap to keep, whether they are drawn or not. No Qt here."""

from views.chat.segments import CODE, MATH, Segment, Splitter, split
from views.chat.turns import TurnView

HEAD, FOLD, THOUGHT = "head", "fold", "thought"
UNKNOWN = -1


class Row:
    """One row.

    Attributes:
        turn: The turn it belongs to.
        kind: ``head``, ``fold``, ``thought`` or the kind of its segment.
        segment: What it shows; ``None`` for head and fold.
        is_first: Whether it is the first part of its code block.
        is_open: Whether its text still grows.
        y: Where it is, pixels from the top of the transcript.
        height: How high it is, pixels; a guess until it was drawn at ``width``.
        width: Width at which ``height`` was measured; ``UNKNOWN`` = never.
    """

    __slots__ = ("height", "is_first", "is_open", "kind", "segment", "turn", "width", "y")

    def __init__(
        self, turn: "Turn", kind: str, segment: Segment | None = None, *, is_first: bool = True
    ) -> None:
        """Make a row that is not drawn yet."""
        self.turn = turn
        self.kind = kind
        self.segment = segment
        self.is_first = is_first
        self.is_open = False
        self.y = 0
        self.height = 0
        self.width = UNKNOWN

    def guess(self, chars_per_line: int, line_height: int) -> int:
        """Return about how high it is, pixels."""
        if self.segment is None:
            return 2 * line_height
        lines = self.segment.text.split("\n")
        if self.segment.kind in (CODE, MATH):
            return (len(lines) + 2) * line_height
        return (sum(1 + len(line) // chars_per_line for line in lines) + 1) * line_height


class Turn:
    """A turn and its rows; grows while its answer arrives.

    Attributes:
        view: The turn.
        is_unfolded: Whether what the model thought is shown.
        is_growing: Whether its answer still arrives.
    """

    def __init__(self, view: TurnView, *, is_growing: bool = False) -> None:
        """Cut the text into rows."""
        self.view = view
        self.is_unfolded = False
        self.is_growing = is_growing
        self._head = Row(self, HEAD)
        self._fold = Row(self, FOLD)
        self._parts: list[str] = [view.content]
        self._thoughts: list[str] = [view.reasoning] if view.reasoning else []
        self._body = _Column(self, "", view.content, is_growing=is_growing)
        self._thinking = _Column(self, THOUGHT, view.reasoning, is_growing=is_growing)

    @property
    def head(self) -> Row:
        """The line above it."""
        return self._head

    @property
    def fold(self) -> Row:
        """The line that unfolds the reasoning."""
        return self._fold

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    @property
    def has_text(self) -> bool:
        """Whether the answer itself has begun."""
        return any(self._parts)

    @property
    def reasoning(self) -> str:
        """What the model thought so far."""
        return "".join(self._thoughts)

    @property
    def n_thought_words(self) -> int:
        """Words of the reasoning."""
        return sum(part.count(" ") for part in self._thoughts) + bool(self._thoughts)

    def rows(self) -> list[Row]:
        """Return every row that is to be seen, top to bottom."""
        rows = [self._head]
        if self._thoughts:
            rows.append(self._fold)
            rows += self._thinking.rows if self.is_unfolded else []
        return rows + self._body.rows

    def append(self, text: str, *, is_thought: bool) -> tuple[Row | None, bool]:
        """Add what arrived; return the row that grew, and whether others changed, too."""
        had_thoughts = bool(self._thoughts)
        (self._thoughts if is_thought else self._parts).append(text)
        row, has_changed = (self._thinking if is_thought else self._body).append(text)
        is_hidden = is_thought and not self.is_unfolded
        new_fold = is_thought and not had_thoughts
        return (None, new_fold) if is_hidden else (row, has_changed or new_fold)

    def adopt(self, view: TurnView) -> None:
        """Take over what the engine's side kept of the same text."""
        self.view = view
        if self.is_growing:
            self.is_growing = False
            self._body.finish()
            self._thinking.finish()

    def code(self, block: int) -> str:
        """Return the text of a whole code block."""
        segments = (r.segment for r in self._body.rows if r.segment is not None)
        return "\n".join(s.text for s in segments if s.block == block and s.kind == CODE)


class _Column:
    """Rows of one text."""

    def __init__(self, turn: Turn, kind: str, text: str, *, is_growing: bool) -> None:
        self._turn = turn
        self._kind = kind
        self._splitter = Splitter()
        self._blocks: set[int] = set()
        self.rows: list[Row] = []
        self._open: Row | None = None
        if is_growing:
            self.append(text)
        else:
            self.rows = [self._row(s) for s in split(text)]

    def append(self, text: str) -> tuple[Row | None, bool]:
        """Add ``text``; return the row that grew, and whether rows came or were finished."""
        done = self._splitter.feed(text)
        if done:
            self._close(done)
        rest = self._splitter.open
        has_changed = bool(done)
        if self._open is not None and (self._open.segment or rest).kind != rest.kind:
            # what looked like text was the mark that begins a block, which is drawn otherwise
            self.rows.remove(self._open)
            self._open, has_changed = None, True
        if not rest.text:
            return None, has_changed
        if self._open is None:
            self._open, has_changed = self._row(rest), True
            self._open.is_open = True
            self.rows.append(self._open)
        self._open.segment = rest
        return self._open, has_changed

    def finish(self) -> None:
        """The text has ended."""
        self._close(self._splitter.finish())

    def _close(self, done: list[Segment]) -> None:
        if self._open is not None:
            self._open.is_open = False
            if done and done[0].kind == (self._open.segment or done[0]).kind:
                self._open.segment = done.pop(0)
                self._open.width = UNKNOWN
            else:
                self.rows.remove(self._open)
            self._open = None
        self.rows += [self._row(s) for s in done]

    def _row(self, segment: Segment) -> Row:
        is_first = segment.kind != CODE or segment.block not in self._blocks
        self._blocks.add(segment.block)
        return Row(self._turn, self._kind or segment.kind, segment, is_first=is_first)
