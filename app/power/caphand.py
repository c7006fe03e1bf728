"""Sets one power limit after another through the helper, with every change on record."""

from app.domain.sweep import Reason
from app.power.changes import Change, ChangeLog, now_utc
from app.power.client import HelperClient, HelperGone
from app.power.protocol import (
    Applied,
    KeepAlive,
    PutBack,
    Range,
    Refused,
    Restore,
    Restored,
    SetPower,
)
from app.power.records import Knob

REASON = Reason(code="cap_sweep")


class CapHand:
    """A helper bound to one device, for a cap sweep. ``close`` puts the limit back."""

    def __init__(self, key: str, client: HelperClient, log: ChangeLog) -> None:
        """Take over a begun helper, and note that the device is being changed.

        Raises:
            EnvironmentProblem: It cannot be noted; then nothing may be set.
        """
        self._key, self._client, self._log = key, client, log
        self._pci_id = client.facts.pci_id if client.facts else ""
        log.mark(key, self._pci_id)

    @property
    def allowed(self) -> Range | None:
        """What the helper lets be set; ``None`` = nothing, for the reason in ``why_not``."""
        return self._client.facts.power if self._client.facts else None

    @property
    def why_not(self) -> str | None:
        """Code of why no limit can be set."""
        return self._client.facts.power_why if self._client.facts else "not_supported"

    def set(self, watts: float) -> str | None:
        """Set a limit; the code of why not, ``None`` when it was read back."""
        try:
            reply = self._client.ask(SetPower(watts=watts))
        except HelperGone:
            return "helper_gone"
        if isinstance(reply, Applied):
            self._add(watts, reply.before, reply.after, "applied")
            return None
        why = reply.code if isinstance(reply, Refused) else "helper_gone"
        self._add(watts, None, None, why)
        return why

    def keep(self) -> bool:
        """Renew the lease; whether the helper is still there."""
        try:
            self._client.ask(KeepAlive())
        except HelperGone:
            return False
        return True

    def restore(self) -> None:
        """Put the limit back."""
        try:
            reply = self._client.ask(Restore())
        except HelperGone as gone:
            self._note(gone.results or ())
            return
        if isinstance(reply, Restored):
            self._note(reply.results)

    def close(self) -> None:
        """Put the limit back and end the helper."""
        results = self._client.end()
        self._note(results)
        if all(result.result != "failed" for result in results):
            self._log.unmark(self._pci_id)

    def _note(self, results: tuple[PutBack, ...]) -> None:
        for result in results:
            self._add(None, None, result.value, result.result)

    def _add(
        self, requested: float | None, before: float | None, after: float | None, result: str
    ) -> None:
        self._log.add(
            Change(
                at_utc=now_utc(),
                key=self._key,
                knob=Knob.POWER_LIMIT,
                requested=requested,
                before=before,
                after=after,
                result=result,
                reason=REASON,
            )
        )
