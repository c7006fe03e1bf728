"""Profiles: settings worth keeping. Deleting can be undone until the deleted ones are purged."""

import secrets
import sqlite3

import msgspec

from app.domain.errors import UsageProblem
from app.store.database import Database, from_text, now_utc, to_text
from app.store.records import Profile

# no letters that are taken for digits or for one another when read aloud or typed
_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
_ID_LENGTH = 6

_SELECT = """
    SELECT p.id, p.name, p.record, m.path, m.n_layer FROM profiles p
    LEFT JOIN models m ON m.fingerprint = p.model WHERE p.deleted_utc IS NULL"""


class Profiles(Database):
    """The part of the store that holds profiles."""

    def save_profile(self, draft: Profile) -> Profile:
        """Store a new profile and return it with its id and time."""
        with self._write() as connection:
            taken = {row["id"] for row in connection.execute("SELECT id FROM profiles")}
            profile = msgspec.structs.replace(draft, id=_new_id(taken), created_utc=now_utc())
            connection.execute(
                "INSERT INTO profiles (id, name, model, created_utc, record)"
                " VALUES (?, ?, ?, ?, ?)",
                (
                    profile.id,
                    profile.name,
                    profile.model_fingerprint,
                    profile.created_utc,
                    to_text(profile),
                ),
            )
        return profile

    def profiles(self, model_fingerprint: str | None = None) -> tuple[Profile, ...]:
        """Return all profiles, or those of one model, newest first."""
        rows = self._rows(
            f"{_SELECT} AND (?1 IS NULL OR p.model = ?1) ORDER BY p.created_utc DESC, p.rowid DESC",
            model_fingerprint,
        )
        return tuple(self._profile(row) for row in rows)

    def profile(self, name: str) -> Profile:
        """Return the profile with this id, or else with this name.

        Raises:
            UsageProblem: No profile or several answer to ``name``.
        """
        rows = self._rows(f"{_SELECT} AND p.id = ?", name)
        rows = rows or self._rows(f"{_SELECT} AND p.name = ?", name)
        if len(rows) == 1:
            return self._profile(rows[0])
        if rows:
            message = f"{len(rows)} profiles are called {name}: {', '.join(r['id'] for r in rows)}."
            raise UsageProblem("profile_ambiguous", message, "Use the id.")
        message = f"There is no profile {name}."
        raise UsageProblem("profile_not_found", message, "`rigtune tune` makes one.")

    def renew_profile(self, profile: Profile) -> None:
        """Store new figures of a profile; name and model stay as they are."""
        self._change("UPDATE profiles SET record = ?2 WHERE id = ?1", profile.id, to_text(profile))

    def rename_profile(self, profile_id: str, name: str) -> None:
        """Give a profile another name."""
        self._change("UPDATE profiles SET name = ?2 WHERE id = ?1", profile_id, name)

    def delete_profile(self, profile_id: str) -> None:
        """Hide a profile; ``restore_profile`` brings it back until it is purged."""
        self._change("UPDATE profiles SET deleted_utc = ?2 WHERE id = ?1", profile_id, now_utc())

    def restore_profile(self, profile_id: str) -> None:
        """Undo ``delete_profile``."""
        self._change("UPDATE profiles SET deleted_utc = NULL WHERE id = ?1", profile_id)

    def purge_profiles(self) -> None:
        """Delete for good what was deleted, when undo is no longer offered."""
        with self._write() as connection:
            connection.execute("DELETE FROM profiles WHERE deleted_utc IS NOT NULL")

    def _change(self, sql: str, profile_id: str, *values: str) -> None:
        with self._write() as connection:
            if connection.execute(sql, (profile_id, *values)).rowcount == 0:
                message = f"There is no profile {profile_id}."
                raise UsageProblem("profile_not_found", message)

    def _profile(self, row: sqlite3.Row) -> Profile:
        profile = from_text(row["record"], Profile, self.path)
        # the model may have moved since, the profile may have been renamed
        return msgspec.structs.replace(
            profile,
            name=row["name"],
            model_path=row["path"] or profile.model_path,
            n_layer=profile.n_layer if row["n_layer"] is None else row["n_layer"],
        )


def _new_id(taken: set[str]) -> str:
    while True:
        new = "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
        if new not in taken:
            return new
