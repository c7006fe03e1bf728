"""Sweeps and their trials: written as they happen, so that a kill costs one trial at most."""

import sqlite3
from collections.abc import Callable

import msgspec

from app.domain.errors import UsageProblem
from app.domain.machine import EngineInfo, Machine
from app.domain.model import ModelSpec
from app.domain.sweep import SweepPlan, SweepRequest, SweepResult, SweepStatus
from app.domain.trial import Trial
from app.store.database import Database, from_text, now_utc, to_text
from app.store.records import StoredSweep, SweepFingerprint, engine_name, machine_name

_SELECT = """
    SELECT s.*, m.name AS model_name, m.path AS model_path,
           (SELECT count(*) FROM trials t WHERE t.sweep = s.id) AS n_trials
    FROM sweeps s JOIN models m ON m.fingerprint = s.model"""


class Sweeps(Database):
    """The part of the store that holds sweeps."""

    def remember_model(self, model: ModelSpec) -> None:
        """Keep where a model was last seen; what refers to it by content finds it there."""
        with self._write() as connection:
            _remember_model(connection, model)

    def start_sweep(
        self,
        *,
        request: SweepRequest,
        plan: SweepPlan,
        fingerprint: SweepFingerprint,
        model: ModelSpec,
        machine: Machine,
        policy_version: int,
    ) -> int:
        """Store a sweep before its first trial and return its number."""
        values = (
            now_utc(),
            to_text(fingerprint),
            to_text(request),
            to_text(plan),
            policy_version,
            model.fingerprint,
        )
        with self._write() as connection:
            _remember_model(connection, model)
            machine_id = _remember(connection, "machines", machine_name(machine), machine)
            engine = machine.engine
            engine_id = (
                _remember(connection, "engines", engine_name(engine), engine) if engine else None
            )
            cursor = connection.execute(
                "INSERT INTO sweeps (created_utc, fingerprint, request, plan, policy_version,"
                " model, machine, engine) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, machine_id, engine_id),
            )
            return int(cursor.lastrowid or 0)

    def add_trial(self, sweep_id: int, trial: Trial) -> int:
        """Store a finished trial; on return it is on the disk.

        Returns:
            Its index in the sweep, from 0.
        """
        settings = trial.effective or trial.request.settings
        with self._write() as connection:
            (n,) = connection.execute(
                "SELECT count(*) FROM trials WHERE sweep = ?", (sweep_id,)
            ).fetchone()
            connection.execute(
                "INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    sweep_id,
                    n,
                    trial.request.stage,
                    trial.outcome.value,
                    trial.load_id,
                    settings.n_gpu_layers,
                    settings.n_ctx,
                    trial.request.workload.depth,
                    trial.ended_utc,
                    to_text(trial),
                ),
            )
            return int(n)

    def finish_sweep(self, sweep_id: int, result: SweepResult) -> None:
        """Store the end of a sweep; its trials are stored already."""
        text = to_text(msgspec.structs.replace(result, trials=()))
        with self._write() as connection:
            connection.execute(
                "UPDATE sweeps SET status = ?, result = ? WHERE id = ?",
                (result.status.value, text, sweep_id),
            )

    def resume_sweep(self, sweep_id: int) -> tuple[Trial, ...]:
        """Reopen a sweep that was interrupted and return what it has measured."""
        with self._write() as connection:
            connection.execute(
                "UPDATE sweeps SET status = NULL, result = NULL WHERE id = ?", (sweep_id,)
            )
        return self.trials(sweep_id)

    def interrupted_sweep(
        self,
        fingerprint: SweepFingerprint,
        is_same: Callable[[StoredSweep], bool] = lambda _: True,
    ) -> tuple[StoredSweep, tuple[Trial, ...]] | None:
        """Return the last sweep of its kind if it stopped early, with its trials.

        Args:
            fingerprint: What it was measured with.
            is_same: Whether a sweep measured with that asked the same; others do not count, nor
                do those that were stopped before they measured anything.
        """
        rows = self._rows(
            f"{_SELECT} WHERE s.fingerprint = ? AND s.deleted_utc IS NULL ORDER BY s.id DESC",
            to_text(fingerprint),
        )
        every = (self._sweep(row) for row in rows)
        told = (s for s in every if s.n_trials or s.status is SweepStatus.COMPLETE)
        last = next((s for s in told if is_same(s)), None)
        return (last, self.trials(last.id)) if last is not None and last.can_resume else None

    def sweeps(self, model_fingerprint: str | None = None) -> tuple[StoredSweep, ...]:
        """Return all sweeps, or those of one model, newest first."""
        rows = self._rows(
            f"{_SELECT} WHERE (?1 IS NULL OR s.model = ?1) AND s.deleted_utc IS NULL"
            " ORDER BY s.created_utc DESC, s.id DESC",
            model_fingerprint,
        )
        return tuple(self._sweep(row) for row in rows)

    def sweep(self, sweep_id: int) -> SweepResult:
        """Return a sweep's result with its trials; one that was killed counts as cancelled.

        Raises:
            UsageProblem: There is no such sweep.
        """
        rows = self._rows("SELECT result FROM sweeps WHERE id = ?", sweep_id)
        if not rows:
            message = f"There is no sweep {sweep_id}."
            raise UsageProblem("sweep_not_found", message)
        trials = self.trials(sweep_id)
        if rows[0]["result"] is None:
            loads = max((t.load_id for t in trials), default=0)
            measured_s = sum(t.elapsed_s for t in trials)
            return SweepResult(
                status=SweepStatus.CANCELLED,
                recommended=None,
                trials=trials,
                n_model_loads=loads,
                measured_s=measured_s,
            )
        result = from_text(rows[0]["result"], SweepResult, self.path)
        return msgspec.structs.replace(result, trials=trials)

    def trials(self, sweep_id: int) -> tuple[Trial, ...]:
        """Return a sweep's trials in order."""
        rows = self._rows("SELECT record FROM trials WHERE sweep = ? ORDER BY n", sweep_id)
        return tuple(from_text(row["record"], Trial, self.path) for row in rows)

    def rename_sweep(self, sweep_id: int, name: str) -> None:
        """Give a sweep, and the profile made from it, a name of the user's."""
        with self._write() as connection:
            _change(connection, "UPDATE sweeps SET name = ?2 WHERE id = ?1", sweep_id, name)
            connection.execute(
                "UPDATE profiles SET name = ?2 WHERE json_extract(record, '$.sweep_id') = ?1",
                (sweep_id, name),
            )

    def delete_sweep(self, sweep_id: int) -> None:
        """Hide a sweep and its profiles; ``restore_sweep`` brings them back until the purge."""
        now = now_utc()
        with self._write() as connection:
            _change(connection, "UPDATE sweeps SET deleted_utc = ?2 WHERE id = ?1", sweep_id, now)
            connection.execute(
                "UPDATE profiles SET deleted_utc = ?2 WHERE deleted_utc IS NULL"
                " AND json_extract(record, '$.sweep_id') = ?1",
                (sweep_id, now),
            )

    def restore_sweep(self, sweep_id: int) -> None:
        """Undo ``delete_sweep``, with the profiles that went with it."""
        with self._write() as connection:
            connection.execute(
                "UPDATE profiles SET deleted_utc = NULL WHERE deleted_utc ="
                " (SELECT deleted_utc FROM sweeps WHERE id = ?1)"
                " AND json_extract(record, '$.sweep_id') = ?1",
                (sweep_id,),
            )
            _change(connection, "UPDATE sweeps SET deleted_utc = NULL WHERE id = ?1", sweep_id)

    def purge_sweeps(self) -> None:
        """Delete for good, trials included, what was deleted when undo is no longer offered."""
        with self._write() as connection:
            connection.execute("DELETE FROM sweeps WHERE deleted_utc IS NOT NULL")

    def _sweep(self, row: sqlite3.Row) -> StoredSweep:
        result = row["result"] and from_text(row["result"], SweepResult, self.path)
        return StoredSweep(
            id=row["id"],
            created_utc=row["created_utc"],
            status=SweepStatus(row["status"]) if row["status"] else None,
            request=from_text(row["request"], SweepRequest, self.path),
            plan=from_text(row["plan"], SweepPlan, self.path),
            fingerprint=from_text(row["fingerprint"], SweepFingerprint, self.path),
            policy_version=row["policy_version"],
            model_name=row["model_name"],
            model_path=row["model_path"],
            n_trials=row["n_trials"],
            recommended=result.recommended if result else None,
            name=row["name"],
        )


def _change(connection: sqlite3.Connection, sql: str, sweep_id: int, *values: str) -> None:
    if connection.execute(sql, (sweep_id, *values)).rowcount == 0:
        message = f"There is no sweep {sweep_id}."
        raise UsageProblem("sweep_not_found", message)


def _remember_model(connection: sqlite3.Connection, model: ModelSpec) -> None:
    connection.execute(
        "INSERT INTO models VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (fingerprint) DO UPDATE"
        " SET path = excluded.path, seen_utc = excluded.seen_utc",
        (
            model.fingerprint,
            model.name,
            model.arch,
            model.path,
            model.file_bytes,
            model.n_layer,
            now_utc(),
        ),
    )


def _remember(
    connection: sqlite3.Connection, table: str, name: str, record: Machine | EngineInfo
) -> int:
    connection.execute(
        f"INSERT INTO {table} (name, record, seen_utc) VALUES (?, ?, ?) ON CONFLICT (name)"  # noqa: S608 - one of two own tables
        " DO UPDATE SET record = excluded.record, seen_utc = excluded.seen_utc",
        (name, to_text(record), now_utc()),
    )
    row = connection.execute(f"SELECT id FROM {table} WHERE name = ?", (name,)).fetchone()  # noqa: S608 - as above
    return int(row["id"])
