"""The store of a session: opened when it is first needed, and not in the way where it fails."""

import contextlib

from app.domain.errors import EnvironmentProblem
from app.session.opening import Learned
from app.store import Calibration, Store


class Kept:
    """What was stored on this machine."""

    def __init__(self) -> None:
        """Prepare; nothing is opened yet."""
        self._store: Store | None = None

    def store(self) -> Store:
        """Return the store, opened once.

        Raises:
            EnvironmentProblem: It cannot be opened.
        """
        if self._store is None:
            self._store = Store.open()
        return self._store

    def learned(self) -> Learned:
        """Return the calibrations; an estimate needs no store, and a trial fails for none."""

        def keep(seen: Calibration) -> None:
            with contextlib.suppress(EnvironmentProblem):
                self.store().add_calibration(seen)

        with contextlib.suppress(EnvironmentProblem):
            return Learned(self.store().calibrations(), keep)
        return Learned()

    def close(self) -> None:
        """Close the store, if it was opened."""
        if self._store is not None:
            self._store.close()
