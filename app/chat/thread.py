"""The turns of one conversation: a tree with one branch in view, kept on disk as it grows.

Editing a question or answering again adds a sibling; nothing is overwritten. Without a store the
turns live in memory only. When the disk refuses, they stay here and are written later.
"""

import sqlite3
from typing import NamedTuple

import msgspec

from app.domain.errors import EnvironmentProblem, ErrorInfo, UsageProblem
from app.domain.events import GenerationFinished
from app.domain.record import Record
from app.store import Store

_TITLE_CHARS = 60


class Turn(Record, frozen=True, kw_only=True):
    """One turn.

    Attributes:
        id: Number within this thread; earlier turns have smaller ones.
        parent: The turn before it; ``None`` for a first one.
        role: ``user`` or ``assistant``.
        content: The text.
        reasoning: What the model thought before it.
        timing: How it was generated, for a finished answer.
    """

    id: int
    parent: int | None
    role: str
    content: str
    reasoning: str = ""
    timing: GenerationFinished | None = None


class Bookmark(NamedTuple):
    """A state of a thread to return to.

    Attributes:
        leaf: Where its view ended.
        next_id: Number of the next turn.
        is_stored: Whether the conversation was on the disk.
    """

    leaf: int | None
    next_id: int
    is_stored: bool


class Thread:
    """Not thread-safe: one caller at a time.

    Attributes:
        id: Number in the store; ``None`` until the first turn is written.
        system: System prompt, empty = none.
        title: Title in the list; empty while no turn is written.
        model_name: Model it is had with.
        model_path: Its file; empty = not known.
        profile_id: Profile it is had with, if any.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        system: str = "",
        model_name: str = "",
        model_path: str = "",
        profile_id: str | None = None,
    ) -> None:
        """Begin an empty conversation; it is written with its first turn."""
        self.id: int | None = None
        self.system = system
        self.title = ""
        self.model_name = model_name
        self.model_path = model_path
        self.profile_id = profile_id
        self._store = store
        self._turns: dict[int, Turn] = {}
        self._stored: dict[int, int] = {}
        self._unsaved: set[int] = set()
        self._leaf: int | None = None
        self._next = 1

    @classmethod
    def open(cls, store: Store, conversation_id: int) -> "Thread":
        """Return a stored conversation, its newest branch in view.

        Raises:
            EnvironmentProblem: There is no such conversation.
        """
        kept = store.conversation(conversation_id)
        thread = cls(
            store,
            system=kept.system,
            model_name=kept.model_name,
            model_path=kept.model_path,
            profile_id=kept.profile_id,
        )
        thread.id, thread.title = kept.id, kept.title
        own: dict[int, int] = {}
        for message in store.messages(kept.id):
            parent = None if message.parent_id is None else own.get(message.parent_id)
            turn = thread.add(message.role, message.content, parent=parent, is_child_of_view=False)
            thread._turns[turn.id] = msgspec.structs.replace(
                turn, reasoning=message.reasoning, timing=message.timing
            )
            own[message.id] = turn.id
            thread._stored[turn.id] = message.id
        thread._unsaved.clear()
        return thread

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The branch in view, oldest turn first."""
        branch: list[Turn] = []
        at = self._leaf
        while at is not None:
            branch.append(self._turns[at])
            at = self._turns[at].parent
        return tuple(reversed(branch))

    def every_turn(self) -> tuple[Turn, ...]:
        """The turns of all branches, parents before their children."""
        return tuple(self._turns.values())

    def siblings(self, turn_id: int) -> tuple[Turn, ...]:
        """Return the turns that stand in the same place, this one included, oldest first."""
        parent = self.turn(turn_id).parent
        return tuple(t for t in self._turns.values() if t.parent == parent)

    def turn(self, turn_id: int) -> Turn:
        """Return one turn of any branch.

        Raises:
            UsageProblem: There is none.
        """
        if turn_id not in self._turns:
            raise UsageProblem("turn_not_found", f"There is no turn {turn_id}.")
        return self._turns[turn_id]

    def turn_of(self, message_id: int | None) -> int | None:
        """Return the turn that the store keeps under this number."""
        return next((own for own, kept in self._stored.items() if kept == message_id), None)

    def set_system(self, text: str) -> None:
        """Change the system prompt; the disk follows if the conversation is stored already.

        Raises:
            EnvironmentProblem: The disk refuses; the new prompt counts all the same.
        """
        self.system = text.encode(errors="replace").decode()
        if self._store and self.id is not None:
            self._store.update_conversation(self.id, system=self.system)

    def choose_model(self, name: str, path: str, profile_id: str | None) -> None:
        """Have the conversation with this model and profile from now on.

        Raises:
            EnvironmentProblem: The disk refuses; the choice counts all the same.
        """
        chosen = (name, path, profile_id)
        if chosen == (self.model_name, self.model_path, self.profile_id):
            return
        self.model_name, self.model_path, self.profile_id = chosen
        if self._store and self.id is not None:
            self._store.choose_model(
                self.id, model_name=name, model_path=path, profile_id=profile_id
            )

    def switch(self, turn_id: int) -> None:
        """Bring the newest branch through a turn into view."""
        at: int | None = self.turn(turn_id).id
        while at is not None:
            self._leaf = at
            at = max((t.id for t in self._turns.values() if t.parent == at), default=None)

    def step_to(self, turn_id: int | None) -> None:
        """End the view at a turn, or before the first one: what is added next follows it."""
        self._leaf = None if turn_id is None else self.turn(turn_id).id

    def add(
        self, role: str, content: str, *, parent: int | None = None, is_child_of_view: bool = True
    ) -> Turn:
        """Add a turn at the end of the view, or below ``parent``, and bring it into view."""
        below = self._leaf if is_child_of_view else parent
        # text from a terminal or a file name may hold what no file can store
        content = content.encode(errors="replace").decode()
        turn = Turn(id=self._next, parent=below, role=role, content=content)
        self._next += 1
        self._turns[turn.id] = turn
        self._unsaved.add(turn.id)
        self._leaf = turn.id
        return turn

    def change(
        self,
        turn_id: int,
        *,
        content: str,
        reasoning: str = "",
        timing: GenerationFinished | None = None,
    ) -> None:
        """Replace a turn's text, as an answer grows."""
        self._turns[turn_id] = msgspec.structs.replace(
            self.turn(turn_id), content=content, reasoning=reasoning, timing=timing
        )
        self._unsaved.add(turn_id)

    def delete(self, turn_id: int) -> None:
        """Delete a turn and what follows it in every branch; the view ends before it.

        A title that was taken from it goes too.

        Raises:
            EnvironmentProblem: The disk refuses; then nothing was deleted.
        """
        gone = self._below(self.turn(turn_id).id)
        title = self._title_without(gone)
        if self._store and turn_id in self._stored:
            self._store.delete_message(self._stored[turn_id], title=self.title, next_title=title)
        self.title = title
        if any(t.id in gone for t in self.turns):
            self._leaf = self._turns[turn_id].parent
        for each in gone:
            del self._turns[each]
            self._stored.pop(each, None)
            self._unsaved.discard(each)

    def bookmark(self) -> Bookmark:
        """Return what ``return_to`` comes back to."""
        return Bookmark(self._leaf, self._next, self.id is not None)

    def return_to(self, mark: Bookmark) -> None:
        """Take out the turns that were added since, and show what was in view.

        Raises:
            EnvironmentProblem: The disk refuses; then nothing was taken out.
        """
        if self._store and self.id is not None and not mark.is_stored:
            self._store.delete_conversation(self.id)
            self.id, self.title = None, ""
            self._stored.clear()
        for turn_id in [t for t in self._turns if t >= mark.next_id]:
            if turn_id in self._turns:  # not gone with the one before
                self.delete(turn_id)
        self._leaf = mark.leaf

    def save(self) -> ErrorInfo | None:
        """Write what is not written yet; return why that failed, or ``None``."""
        if self._store is None:
            self._unsaved.clear()
            return None
        try:
            for turn_id in sorted(self._unsaved):
                self._write(self._store, self._turns[turn_id])
                self._unsaved.discard(turn_id)
        except EnvironmentProblem as problem:
            return problem.info
        except sqlite3.IntegrityError:
            message = "The conversation was deleted elsewhere; it is not written any more."
            return ErrorInfo(
                code="conversation_gone", message=message, hint="Export it to keep it."
            )
        return None

    def _write(self, store: Store, turn: Turn) -> None:
        if self.id is None:
            self.title = _title(turn.content)
            self.id = store.start_conversation(
                title=self.title,
                system=self.system,
                model_name=self.model_name,
                model_path=self.model_path,
                profile_id=self.profile_id,
            ).id
        elif not self.title:
            # the turn that it was taken from was deleted
            self.title = _title(turn.content)
            store.update_conversation(self.id, title=self.title)
        stored = self._stored.get(turn.id)
        if stored is not None:
            store.update_message(
                stored, content=turn.content, reasoning=turn.reasoning, timing=turn.timing
            )
            return
        parent = None if turn.parent is None else self._stored[turn.parent]
        message = store.add_message(
            self.id,
            role=turn.role,
            content=turn.content,
            reasoning=turn.reasoning,
            parent_id=parent,
            timing=turn.timing,
        )
        self._stored[turn.id] = message.id

    def _title_without(self, gone: set[int]) -> str:
        """Return the title once some turns are gone; empty if it was theirs and none is left."""
        if self.title not in {_title(self._turns[each].content) for each in gone}:
            return self.title
        rest = (t for t in self._turns.values() if t.id not in gone)
        return next((_title(t.content) for t in rest), "")

    def _below(self, turn_id: int) -> set[int]:
        gone = {turn_id}
        for turn in self._turns.values():  # children come after their parents
            if turn.parent in gone:
                gone.add(turn.id)
        return gone


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1] + "…"
