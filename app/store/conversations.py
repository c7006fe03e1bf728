"""Conversations: searchable, branching, and really gone once deleted."""

import sqlite3

from app.domain.errors import UsageProblem
from app.domain.events import GenerationFinished
from app.store.database import Database, from_text, now_utc, to_text
from app.store.records import Conversation, SearchHit, StoredMessage

MAX_HITS = 200
_TRIGRAM = 3
_HITS = """
    SELECT m.*, c.title FROM messages m JOIN conversations c ON c.id = m.conversation"""


class Conversations(Database):
    """The part of the store that holds conversations."""

    def start_conversation(
        self,
        *,
        title: str,
        system: str = "",
        model_name: str = "",
        model_path: str = "",
        profile_id: str | None = None,
    ) -> Conversation:
        """Store a new conversation."""
        now = now_utc()
        with self._write() as connection:
            cursor = connection.execute(
                "INSERT INTO conversations (title, system, model_name, model_path, profile_id,"
                " created_utc, updated_utc) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (title, system, model_name, model_path, profile_id, now, now),
            )
        return self.conversation(int(cursor.lastrowid or 0))

    def conversation(self, conversation_id: int) -> Conversation:
        """Return one conversation.

        Raises:
            UsageProblem: There is no such conversation.
        """
        rows = self._rows("SELECT * FROM conversations WHERE id = ?", conversation_id)
        if not rows:
            message = f"There is no conversation {conversation_id}."
            raise UsageProblem("conversation_not_found", message)
        return _conversation(rows[0])

    def conversations(self) -> tuple[Conversation, ...]:
        """Return all conversations, the one with the newest message first."""
        rows = self._rows("SELECT * FROM conversations ORDER BY updated_utc DESC, id DESC")
        return tuple(_conversation(row) for row in rows)

    def update_conversation(
        self, conversation_id: int, *, title: str | None = None, system: str | None = None
    ) -> Conversation:
        """Change what is given and keep the rest."""
        with self._write() as connection:
            connection.execute(
                "UPDATE conversations SET title = coalesce(?2, title),"
                " system = coalesce(?3, system) WHERE id = ?1",
                (conversation_id, title, system),
            )
        return self.conversation(conversation_id)

    def choose_model(
        self, conversation_id: int, *, model_name: str, model_path: str, profile_id: str | None
    ) -> None:
        """Say which model and profile the conversation is had with from now on."""
        with self._write() as connection:
            connection.execute(
                "UPDATE conversations SET model_name = ?, model_path = ?, profile_id = ?"
                " WHERE id = ?",
                (model_name, model_path, profile_id, conversation_id),
            )

    def draft(self, conversation_id: int | None) -> str:
        """Return what was written there and not sent; ``None`` = in the next new conversation."""
        rows = self._rows("SELECT content FROM drafts WHERE conversation IS ?", conversation_id)
        return str(rows[0]["content"]) if rows else ""

    def keep_draft(self, conversation_id: int | None, text: str) -> None:
        """Keep what is written and not sent yet; an empty text forgets it."""
        with self._write() as connection:
            connection.execute("DELETE FROM drafts WHERE conversation IS ?", (conversation_id,))
            if text:
                # one that was deleted meanwhile gets none
                connection.execute(
                    "INSERT INTO drafts SELECT ?1, ?2 WHERE ?1 IS NULL"
                    " OR EXISTS (SELECT 1 FROM conversations WHERE id = ?1)",
                    (conversation_id, text),
                )

    def delete_conversation(self, conversation_id: int) -> None:
        """Delete a conversation so that its text is in none of the database's files."""
        with self._write() as connection:
            connection.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))
            # deleted words live on in the index until its parts are merged
            connection.execute("INSERT INTO message_index(message_index) VALUES ('optimize')")
        # and in the log until it is emptied (later, by itself, if another process reads now)
        self._rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def add_message(
        self,
        conversation_id: int,
        *,
        role: str,
        content: str,
        parent_id: int | None = None,
        timing: GenerationFinished | None = None,
        reasoning: str = "",
    ) -> StoredMessage:
        """Store one turn below ``parent_id``."""
        now = now_utc()
        with self._write() as connection:
            cursor = connection.execute(
                "INSERT INTO messages (conversation, parent, role, content, timing, created_utc,"
                " reasoning) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (conversation_id, parent_id, role, content, _timing_text(timing), now, reasoning),
            )
            connection.execute(
                "UPDATE conversations SET updated_utc = ? WHERE id = ?", (now, conversation_id)
            )
        return StoredMessage(
            id=int(cursor.lastrowid or 0),
            parent_id=parent_id,
            role=role,
            content=content,
            reasoning=reasoning,
            timing=timing,
            created_utc=now,
        )

    def update_message(
        self,
        message_id: int,
        *,
        content: str,
        timing: GenerationFinished | None = None,
        reasoning: str = "",
    ) -> None:
        """Replace a turn's text: an answer while it grows, so that a crash keeps it."""
        with self._write() as connection:
            connection.execute(
                "UPDATE messages SET content = ?, timing = ?, reasoning = ? WHERE id = ?",
                (content, _timing_text(timing), reasoning, message_id),
            )

    def delete_message(self, message_id: int, *, title: str = "", next_title: str = "") -> None:
        """Delete a turn and all that followed it, in every branch; as thorough as above.

        A conversation that is called ``title`` is called ``next_title`` then.
        """
        with self._write() as connection:
            connection.execute(
                "UPDATE conversations SET title = ?3 WHERE title = ?2"
                " AND id = (SELECT conversation FROM messages WHERE id = ?1)",
                (message_id, title, next_title),
            )
            connection.execute("DELETE FROM messages WHERE id = ?", (message_id,))
            connection.execute("INSERT INTO message_index(message_index) VALUES ('optimize')")
        self._rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def messages(self, conversation_id: int) -> tuple[StoredMessage, ...]:
        """Return every turn of every branch, oldest first."""
        rows = self._rows(
            "SELECT * FROM messages WHERE conversation = ? ORDER BY id", conversation_id
        )
        return tuple(self._message(row) for row in rows)

    def search_messages(self, text: str) -> tuple[SearchHit, ...]:
        """Return turns that contain every word of ``text``, newest first, at most ``MAX_HITS``.

        Parts of words count. Words of one or two characters are looked for without the index.
        """
        words = text.split()
        if not words:
            return ()
        conditions, values = [], []
        for word in words:
            if len(word) < _TRIGRAM:
                conditions.append("instr(lower(m.content), lower(?)) > 0")
                values.append(word)
            else:
                conditions.append("m.id IN (SELECT rowid FROM message_index(?))")
                values.append('"' + word.replace('"', '""') + '"')
        order = f"ORDER BY m.id DESC LIMIT {MAX_HITS}"
        rows = self._rows(f"{_HITS} WHERE {' AND '.join(conditions)} {order}", *values)
        return tuple(
            SearchHit(
                conversation_id=row["conversation"],
                title=row["title"],
                message=self._message(row),
            )
            for row in rows
        )

    def _message(self, row: sqlite3.Row) -> StoredMessage:
        timing = row["timing"]
        return StoredMessage(
            id=row["id"],
            parent_id=row["parent"],
            role=row["role"],
            content=row["content"],
            reasoning=row["reasoning"],
            timing=from_text(timing, GenerationFinished, self.path) if timing else None,
            created_utc=row["created_utc"],
        )


def _timing_text(timing: GenerationFinished | None) -> str | None:
    return None if timing is None else to_text(timing)


def _conversation(row: sqlite3.Row) -> Conversation:
    return Conversation(**{name: row[name] for name in Conversation.__struct_fields__})
