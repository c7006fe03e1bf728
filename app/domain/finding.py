"""Something worth telling the user about the machine, a plan or a result."""

from enum import StrEnum

from app.domain.record import Record


class Severity(StrEnum):
    """How much it matters."""

    INFO = "info"
    HINT = "hint"
    WARNING = "warning"
    PROBLEM = "problem"


class Actor(StrEnum):
    """Who can apply the remedy of a finding."""

    RIGTUNE = "rigtune"
    USER = "user"
    NOBODY = "nobody"


class Finding(Record, frozen=True, kw_only=True):
    """A rule that fired. Text, remedy and check come from ``advice.text`` by ``id``.

    Attributes:
        id: The rule, also the key of its texts.
        severity: How much it matters.
        evidence: What was read, and the placeholders of the texts; ``system`` chooses the words
            where a setting lies elsewhere on each (``linux``, ``windows``, ``wsl2``).
        actor: Who can apply the remedy.
        source: What the rule rests on.
    """

    id: str
    severity: Severity
    evidence: dict[str, str | int | float | None] = {}
    actor: Actor = Actor.USER
    source: str = ""


class CheckStatus(StrEnum):
    """Result of one step of the self-test."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


class Check(Record, frozen=True, kw_only=True):
    """One step of the self-test: what was tried and how it went."""

    id: str
    status: CheckStatus
    text: str
    hint: str = ""
