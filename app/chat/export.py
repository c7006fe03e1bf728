"""A conversation as a document: Markdown to read, JSON to keep every branch."""

from pathlib import Path

from app.chat.thread import Thread, Turn
from app.domain.errors import EnvironmentProblem
from app.domain.record import Record, encode_json
from app.runtime import atomic_write

_NAMES = {"user": "You", "assistant": "Model"}


class ChatExport(Record, frozen=True, kw_only=True):
    """``rigtune.conversation/1``: a conversation with all its branches.

    Attributes:
        schema: Name and version of the format.
        title: Its title.
        system: System prompt, empty = none.
        turns: Every turn; ``parent`` makes them a tree.
        view: Ids of the branch in view, oldest turn first.
    """

    schema: str = "rigtune.conversation/1"
    title: str
    system: str
    turns: tuple[Turn, ...]
    view: tuple[int, ...]


def save(thread: Thread, path: Path) -> None:
    """Write the conversation to a file: JSON where its name ends so, else Markdown.

    Raises:
        EnvironmentProblem: It cannot be written.
    """
    title = thread.title or "Conversation"
    is_json = path.suffix.lower() == ".json"
    data = to_json(thread, title) if is_json else to_markdown(thread, title).encode()
    try:
        atomic_write(path, data)
    except EnvironmentProblem as problem:
        info = problem.info
        hint = "Choose another folder, or free some space there."
        raise EnvironmentProblem(info.code, info.message, hint) from problem


def to_markdown(thread: Thread, title: str = "Conversation") -> str:
    """Return the branch in view as Markdown; reasoning is folded."""
    parts = [f"# {title}"]
    if thread.system:
        parts.append("> " + thread.system.replace("\n", "\n> "))
    for turn in thread.turns:
        parts.append(f"## {_NAMES.get(turn.role, turn.role)}")
        if turn.reasoning:
            parts.append(
                "<details><summary>Reasoning</summary>\n\n" + turn.reasoning + "\n\n</details>"
            )
        parts.append(turn.content.rstrip())
    return "\n\n".join(parts) + "\n"


def to_json(thread: Thread, title: str = "Conversation") -> bytes:
    """Return the conversation with all its branches as one JSON document."""
    return encode_json(
        ChatExport(
            title=title,
            system=thread.system,
            turns=thread.every_turn(),
            view=tuple(t.id for t in thread.turns),
        )
    )
