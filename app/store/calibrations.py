"""What real loads taught about the memory llama.cpp does not count."""

import sqlite3

import msgspec

from app.store.database import Database, now_utc, to_text
from app.store.records import Calibration, CalibrationKey


class Calibrations(Database):
    """The part of the store that holds calibrations."""

    def calibrations(self) -> tuple[Calibration, ...]:
        """Return everything learned; a row that cannot be read is left out."""
        rows = self._rows("SELECT * FROM calibrations")
        return tuple(found for row in rows if (found := _calibration(row)) is not None)

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


def _calibration(row: sqlite3.Row) -> Calibration | None:
    try:
        key = msgspec.json.decode(row["key"], type=CalibrationKey)
    except msgspec.DecodeError:
        return None
    return Calibration(
        key=key,
        driver_context_bytes=row["driver_context_bytes"],
        growth_bytes=row["growth_bytes"],
        n_loads=row["n_loads"],
    )
