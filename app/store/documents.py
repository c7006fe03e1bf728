"""A search as one JSON file: to keep, to send, and to read in on another machine."""

from typing import Literal

import msgspec

from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.machine import EngineInfo, Machine
from app.domain.record import Record, encode_json
from app.domain.sweep import SweepPlan, SweepRequest, SweepResult
from app.store.database import Database, from_text, now_utc, to_text
from app.store.records import Profile, SweepFingerprint

FORMAT: Literal["rigtune-result/1"] = "rigtune-result/1"
MAX_BYTES = 64 << 20


class DocumentModel(Record, frozen=True, kw_only=True):
    """The model a search was about, without where it lay."""

    fingerprint: str
    name: str
    arch: str
    file_bytes: int
    n_layer: int


class Document(Record, frozen=True, kw_only=True):
    """Everything that is kept of one search.

    Attributes:
        format: Name and version of this layout.
        name: The user's name for it.
        created_utc: RFC 3339 time of the start.
        model: The model.
        request: What was asked.
        plan: What was planned.
        fingerprint: What it was measured with.
        policy_version: Version of the search policy.
        machine_name: CPU and GPUs in one line.
        machine: The machine.
        engine_name: The engine build in one line; empty without one.
        engine: The engine build.
        result: The answer with every trial.
        profile: Settings kept from it.
    """

    format: Literal["rigtune-result/1"]
    name: str = ""
    created_utc: str
    model: DocumentModel
    request: SweepRequest
    plan: SweepPlan
    fingerprint: SweepFingerprint
    policy_version: int
    machine_name: str
    machine: Machine
    engine_name: str = ""
    engine: EngineInfo | None = None
    result: SweepResult
    profile: Profile | None = None


class Documents(Database):
    """The part of the store that writes and reads such files."""

    def export_sweep(self, sweep_id: int, result: SweepResult, profile: Profile | None) -> bytes:
        """Return a sweep as a file; where the model lay on this machine is left out.

        Raises:
            UsageProblem: There is no such sweep.
        """
        rows = self._rows(
            """SELECT s.*, m.name AS model_name, m.arch, m.file_bytes, m.n_layer,
                      c.name AS machine_name, c.record AS machine_record,
                      e.name AS engine_name, e.record AS engine_record
               FROM sweeps s JOIN models m ON m.fingerprint = s.model
               JOIN machines c ON c.id = s.machine LEFT JOIN engines e ON e.id = s.engine
               WHERE s.id = ?""",
            sweep_id,
        )
        if not rows:
            message = f"There is no sweep {sweep_id}."
            raise UsageProblem("sweep_not_found", message)
        row = rows[0]
        engine = row["engine_record"]
        document = Document(
            format=FORMAT,
            name=row["name"],
            created_utc=row["created_utc"],
            model=DocumentModel(
                fingerprint=row["model"], name=row["model_name"], arch=row["arch"],
                file_bytes=row["file_bytes"], n_layer=row["n_layer"],
            ),
            request=from_text(row["request"], SweepRequest, self.path),
            plan=from_text(row["plan"], SweepPlan, self.path),
            fingerprint=from_text(row["fingerprint"], SweepFingerprint, self.path),
            policy_version=row["policy_version"],
            machine_name=row["machine_name"],
            machine=from_text(row["machine_record"], Machine, self.path),
            engine_name=row["engine_name"] or "",
            engine=from_text(engine, EngineInfo, self.path) if engine else None,
            result=result,
            profile=None if profile is None else msgspec.structs.replace(profile, model_path=""),
        )  # fmt: skip
        return msgspec.json.format(encode_json(document), indent=1)

    def import_sweep(self, document: Document) -> int:
        """Store what ``export_sweep`` wrote, its profile apart, and return its number here."""
        with self._write() as connection:
            model = document.model
            connection.execute(
                "INSERT OR IGNORE INTO models VALUES (?, ?, ?, '', ?, ?, ?)",
                (model.fingerprint, model.name, model.arch, model.file_bytes, model.n_layer,
                 now_utc()),
            )  # fmt: skip
            machine = self._kept("machines", document.machine_name, document.machine)
            engine = document.engine and self._kept(
                "engines", document.engine_name, document.engine
            )
            result = document.result
            cursor = connection.execute(
                "INSERT INTO sweeps (created_utc, status, fingerprint, request, plan, result,"
                " policy_version, model, machine, engine, name)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (document.created_utc, result.status.value, to_text(document.fingerprint),
                 to_text(document.request), to_text(document.plan),
                 to_text(msgspec.structs.replace(result, trials=())), document.policy_version,
                 model.fingerprint, machine, engine, document.name),
            )  # fmt: skip
            sweep_id = int(cursor.lastrowid or 0)
            for n, trial in enumerate(result.trials):
                at = trial.effective or trial.request.settings
                connection.execute(
                    "INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (sweep_id, n, trial.request.stage, trial.outcome.value, trial.load_id,
                     at.n_gpu_layers, at.n_ctx, trial.request.workload.depth, trial.ended_utc,
                     to_text(trial)),
                )  # fmt: skip
        return sweep_id

    def _kept(self, table: str, name: str, record: Machine | EngineInfo) -> int:
        """Return the row of a machine or engine; one that is known already is not overwritten."""
        connection = self._connection()
        connection.execute(
            f"INSERT OR IGNORE INTO {table} (name, record, seen_utc) VALUES (?, ?, ?)",  # noqa: S608 - one of two own tables
            (name, to_text(record), now_utc()),
        )
        row = connection.execute(f"SELECT id FROM {table} WHERE name = ?", (name,)).fetchone()  # noqa: S608 - as above
        return int(row["id"])


def read_document(data: bytes) -> Document:
    """Return the search in ``data``.

    Raises:
        EnvironmentProblem: It is no file of this kind, or damaged.
    """
    hint = "Choose a file that RigTune exported as JSON."
    if len(data) > MAX_BYTES:
        raise EnvironmentProblem("not_a_result", "The file is too large for a result.", hint)
    try:
        return msgspec.json.decode(data, type=Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"The file holds no RigTune result: {error}."
        raise EnvironmentProblem("not_a_result", message, hint) from error
