"""Tables of the database and how an older one becomes today's.

``user_version`` packs major and minor: a minor step only adds, so an older program may go on
writing; after a major step an older program must not write.
"""

MAJOR, MINOR = 1, 3
VERSION = MAJOR << 16 | MINOR

# what is written and not sent yet; without a conversation: that of the next new one
_DRAFTS = """CREATE TABLE drafts (
    conversation INTEGER UNIQUE REFERENCES conversations(id) ON DELETE CASCADE,
    content TEXT NOT NULL)"""

CREATE = (
    """CREATE TABLE machines (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, record TEXT NOT NULL,
        seen_utc TEXT NOT NULL)""",
    """CREATE TABLE engines (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, record TEXT NOT NULL,
        seen_utc TEXT NOT NULL)""",
    """CREATE TABLE models (
        fingerprint TEXT PRIMARY KEY, name TEXT NOT NULL, arch TEXT NOT NULL,
        path TEXT NOT NULL, file_bytes INTEGER NOT NULL, n_layer INTEGER NOT NULL,
        seen_utc TEXT NOT NULL)""",
    """CREATE TABLE sweeps (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        created_utc TEXT NOT NULL,
        status TEXT,
        fingerprint TEXT NOT NULL,
        request TEXT NOT NULL,
        plan TEXT NOT NULL,
        result TEXT,
        policy_version INTEGER NOT NULL,
        model TEXT NOT NULL REFERENCES models(fingerprint),
        machine INTEGER NOT NULL REFERENCES machines(id),
        engine INTEGER REFERENCES engines(id),
        name TEXT NOT NULL DEFAULT '',
        deleted_utc TEXT)""",
    "CREATE INDEX sweeps_by_fingerprint ON sweeps(fingerprint)",
    """CREATE TABLE trials (
        sweep INTEGER NOT NULL REFERENCES sweeps(id) ON DELETE CASCADE,
        n INTEGER NOT NULL,
        stage TEXT NOT NULL,
        outcome TEXT NOT NULL,
        load_id INTEGER NOT NULL,
        n_gpu_layers INTEGER NOT NULL,
        n_ctx INTEGER NOT NULL,
        depth INTEGER NOT NULL,
        ended_utc TEXT NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (sweep, n))""",
    """CREATE TABLE profiles (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, model TEXT NOT NULL, created_utc TEXT NOT NULL,
        deleted_utc TEXT, record TEXT NOT NULL)""",
    """CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, system TEXT NOT NULL,
        model_name TEXT NOT NULL, profile_id TEXT, created_utc TEXT NOT NULL,
        updated_utc TEXT NOT NULL, model_path TEXT NOT NULL DEFAULT '')""",
    _DRAFTS,
    """CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
        parent INTEGER REFERENCES messages(id) ON DELETE CASCADE,
        role TEXT NOT NULL, content TEXT NOT NULL, timing TEXT, created_utc TEXT NOT NULL,
        reasoning TEXT NOT NULL DEFAULT '')""",
    "CREATE INDEX messages_by_conversation ON messages(conversation)",
    "CREATE INDEX messages_by_parent ON messages(parent)",
    # trigrams find parts of words, and words of languages written without spaces
    """CREATE VIRTUAL TABLE message_index USING fts5(
        content, content='messages', content_rowid='id', tokenize='trigram')""",
    """CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
        INSERT INTO message_index(rowid, content) VALUES (new.id, new.content); END""",
    """CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
        INSERT INTO message_index(message_index, rowid, content)
        VALUES ('delete', old.id, old.content); END""",
    """CREATE TRIGGER message_changed AFTER UPDATE OF content ON messages BEGIN
        INSERT INTO message_index(message_index, rowid, content)
        VALUES ('delete', old.id, old.content);
        INSERT INTO message_index(rowid, content) VALUES (new.id, new.content); END""",
    """CREATE TABLE calibrations (
        key TEXT PRIMARY KEY, driver_context_bytes INTEGER NOT NULL,
        growth_bytes INTEGER NOT NULL, n_loads INTEGER NOT NULL, seen_utc TEXT NOT NULL)""",
)

# from version: (to version, statements); each is tested with a golden file of its old version
UPGRADES: dict[int, tuple[int, tuple[str, ...]]] = {
    1 << 16: (
        1 << 16 | 1,
        ("ALTER TABLE messages ADD COLUMN reasoning TEXT NOT NULL DEFAULT ''",),
    ),
    1 << 16 | 1: (
        1 << 16 | 2,
        ("ALTER TABLE conversations ADD COLUMN model_path TEXT NOT NULL DEFAULT ''", _DRAFTS),
    ),
    1 << 16 | 2: (
        1 << 16 | 3,
        (
            "ALTER TABLE sweeps ADD COLUMN name TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE sweeps ADD COLUMN deleted_utc TEXT",
        ),
    ),
}
