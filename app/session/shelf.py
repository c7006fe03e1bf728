"""The part of the façade that reads what was kept; it needs no machine and no engine."""

from app.domain.sweep import SweepResult
from app.export import export
from app.session.kept import Kept
from app.store import Profile, Store, StoredSweep


class Shelf:
    """Stored searches, profiles and conversations."""

    def __init__(self) -> None:
        """Prepare; nothing is opened yet."""
        self._kept = Kept()

    def sweeps(self) -> tuple[StoredSweep, ...]:
        """Return the stored searches, newest first."""
        return self.store().sweeps()

    def sweep(self, sweep_id: int) -> SweepResult:
        """Return a stored search's result with its trials."""
        return self.store().sweep(sweep_id)

    def profiles(self) -> tuple[Profile, ...]:
        """Return the stored profiles, newest first."""
        return self.store().profiles()

    def profile(self, profile_id: str) -> Profile:
        """Return a stored profile by id or name."""
        return self.store().profile(profile_id)

    def export(self, profile_id: str, target: str) -> str:
        """Return a profile as another program's command or file."""
        return export(self.profile(profile_id), target)

    def store(self) -> Store:
        """Return the store, for what has no method here: renaming, deleting, conversations."""
        return self._kept.store()
