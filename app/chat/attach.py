"""Text files that go along with a message."""

from collections.abc import Sequence
from pathlib import Path

from app.domain.errors import EnvironmentProblem
from app.domain.record import Record

MAX_BYTES = 512 * 1024
"""Largest file; the protocol carries 1 MiB for the whole conversation."""

_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


class Attachment(Record, frozen=True, kw_only=True):
    """A file's name and text."""

    name: str
    text: str


def read_attachment(path: Path) -> Attachment:
    """Read a text file.

    Raises:
        EnvironmentProblem: It is not there, too large, or no text.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"{path.name} cannot be read: {reason}."
        raise EnvironmentProblem(
            "attachment_unreadable", message, "Choose another file."
        ) from error
    if len(data) > MAX_BYTES:
        message = f"{path.name} is larger than {MAX_BYTES // 1024} KiB."
        hint = "Attach the part that matters, or paste it."
        raise EnvironmentProblem("attachment_too_large", message, hint)
    encoding = next((e for bom, e in _BOMS.items() if data.startswith(bom)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _no_text(path) from error
    if "\0" in text:
        raise _no_text(path)
    return Attachment(name=path.name, text=text)


def with_attachments(text: str, attachments: Sequence[Attachment]) -> str:
    """Return a message with the files in front of it, each in a fence longer than its own."""
    return "\n\n".join([*map(_block, attachments), text])


def _block(attachment: Attachment) -> str:
    fence = "```"
    while fence in attachment.text:
        fence += "`"
    name = attachment.name.replace("\n", " ")
    return f"File {name}:\n{fence}\n{attachment.text.rstrip()}\n{fence}"


def _no_text(path: Path) -> EnvironmentProblem:
    message = f"{path.name} is not a text file."
    return EnvironmentProblem("attachment_not_text", message, "Attach text: UTF-8 or UTF-16.")
