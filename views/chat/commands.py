"""What the chat page asks of the engine's side. Carried out one by one, in order."""

from app.chat.overflow import Overflow
from app.domain.record import Record
from app.worker.protocol import Sampling
from views.chat.picker import Choice


class Ask(Record, frozen=True, kw_only=True):
    """Send a message and answer it."""

    text: str


class Edit(Record, frozen=True, kw_only=True):
    """Replace a message by another one, as a further branch, and answer it."""

    turn_id: int
    text: str


class Retry(Record, frozen=True, kw_only=True):
    """Answer the last message anew, as a further branch."""


class GoOn(Record, frozen=True, kw_only=True):
    """Go on with the last answer where it was cut short, or begin it."""


class Switch(Record, frozen=True, kw_only=True):
    """Bring the newest branch through a turn into view."""

    turn_id: int


class Delete(Record, frozen=True, kw_only=True):
    """Delete a turn and what follows it."""

    turn_id: int


class Open(Record, frozen=True, kw_only=True):
    """Bring a stored conversation into view; ``None`` = begin a new one.

    Attributes:
        conversation_id: Its number.
        message_id: Number of the stored turn to show; ``None`` = the newest.
    """

    conversation_id: int | None
    message_id: int | None = None


class Export(Record, frozen=True, kw_only=True):
    """Write the conversation in view to a file: JSON where its name ends so, else Markdown."""

    path: str


class Choose(Record, frozen=True, kw_only=True):
    """Have the conversation on another model or profile from now on."""

    choice: Choice


class Configure(Record, frozen=True, kw_only=True):
    """How the model is asked from now on."""

    system: str = ""
    sampling: Sampling | None = None
    overflow: Overflow = Overflow.STOP
    template: str = ""
    stop: tuple[str, ...] = ()


class Count(Record, frozen=True, kw_only=True):
    """Count the tokens of texts, by key."""

    texts: dict[str, str]


class Unload(Record, frozen=True, kw_only=True):
    """Give the model's memory back."""


Command = (
    Ask
    | Edit
    | Retry
    | GoOn
    | Switch
    | Delete
    | Open
    | Export
    | Choose
    | Configure
    | Count
    | Unload
)
