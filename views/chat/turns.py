"""What the engine's side of a chat tells the page, besides the events of the core."""

from app.chat.context_use import ContextUse
from app.chat.slowness import SlowCause
from app.domain.errors import ErrorInfo
from app.domain.events import GenerationFinished
from app.domain.memory import DeviceMemory
from app.domain.record import Record
from app.domain.settings import Settings
from app.worker.protocol import TemplateFinding


class TurnView(Record, frozen=True, kw_only=True):
    """One turn of the branch in view.

    Attributes:
        id: Number within the conversation; ``None`` = written, but not taken over yet.
        role: ``user`` or ``assistant``.
        content: The text.
        reasoning: What the model thought before it.
        timing: How it was generated.
        siblings: Turns that stand in the same place, this one included, oldest first.
    """

    id: int | None = None
    role: str
    content: str
    reasoning: str = ""
    timing: GenerationFinished | None = None
    siblings: tuple[int, ...] = ()


class TurnsShown(Record, frozen=True, kw_only=True):
    """The conversation in view and its turns.

    Attributes:
        conversation_id: Number in the store; ``None`` = nothing is stored yet.
        title: Its title.
        system: Its system prompt.
        model_path: Model it was had with; empty = not known.
        profile_id: Profile it was had with, if any.
        turns: The branch in view.
        is_opened: Whether the user just opened it.
        found: Turn the user looked for, if any.
    """

    conversation_id: int | None
    title: str
    system: str
    model_path: str
    profile_id: str | None
    turns: tuple[TurnView, ...]
    is_opened: bool = False
    found: int | None = None


class AnswerBegun(Record, frozen=True, kw_only=True):
    """An answer comes next; ``continues`` = it goes on with the last turn."""

    continues: bool


class AnswerStopped(Record, frozen=True, kw_only=True):
    """The user stopped the answer; what came so far is kept."""


class MessageReturned(Record, frozen=True, kw_only=True):
    """A message did not fit and is no turn any more: it is the user's to change.

    Attributes:
        conversation_id: Where it was written; ``None`` = in one that is not stored.
        text: The message.
        edits: Turn that it was to replace, if any.
    """

    conversation_id: int | None
    text: str
    edits: int | None = None


class ChatReady(Record, frozen=True, kw_only=True):
    """The model is loaded.

    Attributes:
        settings: What it runs on.
        profile_id: The profile those come from, if any.
        has_template: Whether the model says how a conversation is written.
        notes: Sentences the user should read first.
        devices: What it needs, by estimate.
    """

    settings: Settings
    profile_id: str | None
    has_template: bool
    notes: tuple[str, ...]
    devices: tuple[DeviceMemory, ...]


class ChatUnloaded(Record, frozen=True, kw_only=True):
    """The model is not loaded any more; ``is_idle`` = because nobody asked anything."""

    is_idle: bool


class TemplateTried(Record, frozen=True, kw_only=True):
    """Two short turns were tried; ``findings`` says what is wrong, if anything."""

    findings: tuple[TemplateFinding, ...]


class CommandFailed(Record, frozen=True, kw_only=True):
    """What was asked for could not be done; the conversation goes on."""

    error: ErrorInfo


class ContextCounted(Record, frozen=True, kw_only=True):
    """What the context is filled with."""

    use: ContextUse


class TextsCounted(Record, frozen=True, kw_only=True):
    """Tokens of texts that were asked about, by their key."""

    counts: dict[str, int]


class Vitals(Record, frozen=True, kw_only=True):
    """What the machine does while the model is loaded.

    Attributes:
        power_w: Draw of the devices in use together; ``None`` = not known.
        temp_c: Temperature of the hottest of them; of the CPU where it does everything.
        causes: Why the answer is slow, if it is.
        neighbour: Program that just took graphics memory; ``None`` = none.
        free_bytes: Graphics memory left then.
        idle_left_s: Seconds until the model is unloaded if nobody asks.
    """

    power_w: float | None = None
    temp_c: float | None = None
    causes: tuple[SlowCause, ...] = ()
    neighbour: str | None = None
    free_bytes: int | None = None
    idle_left_s: float | None = None
