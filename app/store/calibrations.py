"""What real loads taught about the memory llama.cpp does not count."""

from app.store.database import Database, now_utc, to_text
from app.store.records import Calibration, CalibrationKey


class Calibrations(Database):
    """The part of the store that holds calibrations."""

    def calibration(self, key: CalibrationKey) -> Calibration | None:
        """Return what is known for exactly this key."""
        rows = self._rows("SELECT * FROM calibrations WHERE key = ?", to_text(key))
        if not rows:
            return None
        return Calibration(
            key=key,
            driver_context_bytes=rows[0]["driver_context_bytes"],
            growth_bytes=rows[0]["growth_bytes"],
            n_loads=rows[0]["n_loads"],
        )

    def add_calibration(self, seen: Calibration) -> None:
        """Add what a real load showed; the largest sizes stay, for a bound must hold."""
        with self._write() as connection:
            connection.execute(
                "INSERT INTO calibrations VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
                " driver_context_bytes = max(driver_context_bytes, excluded.driver_context_bytes),"
                " growth_bytes = max(growth_bytes, excluded.growth_bytes),"
                " n_loads = n_loads + excluded.n_loads, seen_utc = excluded.seen_utc",
                (
                    to_text(seen.key),
                    seen.driver_context_bytes,
                    seen.growth_bytes,
                    seen.n_loads,
                    now_utc(),
                ),
            )
