-- What was said in sessions, what it cost, and what sessions are called.
-- Instants are microseconds since the epoch, in UTC.

ALTER TABLE sessions ADD COLUMN title TEXT;
ALTER TABLE sessions ADD COLUMN title_by TEXT;
ALTER TABLE sessions ADD COLUMN model TEXT;
ALTER TABLE sessions ADD COLUMN model_config TEXT;
ALTER TABLE sessions ADD COLUMN system_prompt TEXT;
ALTER TABLE sessions ADD COLUMN billing_provider TEXT;
ALTER TABLE sessions ADD COLUMN billing_base_url TEXT;
ALTER TABLE sessions ADD COLUMN billing_mode TEXT;
ALTER TABLE sessions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN extra TEXT;

CREATE UNIQUE INDEX sessions_by_title ON sessions (title, owner) WHERE title IS NOT NULL;
CREATE UNIQUE INDEX sessions_continuation ON sessions (parent_session_id) WHERE relation = 'continuation';
CREATE INDEX sessions_by_owner ON sessions (owner);
CREATE INDEX sessions_by_source ON sessions (source);
CREATE INDEX sessions_by_start ON sessions (started_at, session_id);
CREATE INDEX sessions_archived ON sessions (archived) WHERE archived = 1;

-- What a session's messages and its use add up to: written with every message, so it has rows of its own.
CREATE TABLE totals (
    session_id         TEXT PRIMARY KEY,
    last_active        INTEGER NOT NULL,
    last_seq           INTEGER NOT NULL DEFAULT 0,
    message_count      INTEGER NOT NULL DEFAULT 0,
    tool_call_count    INTEGER NOT NULL DEFAULT 0,
    text_bytes         INTEGER NOT NULL DEFAULT 0,
    rewind_count       INTEGER NOT NULL DEFAULT 0,
    preview            TEXT,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens   INTEGER NOT NULL DEFAULT 0,
    api_call_count     INTEGER NOT NULL DEFAULT 0,
    estimated_cost_usd REAL,
    actual_cost_usd    REAL,
    cost_status        TEXT,
    cost_source        TEXT,
    pricing_version    TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX totals_recent ON totals (last_active, session_id);

INSERT INTO totals (session_id, last_active) SELECT session_id, coalesce(ended_at, started_at) FROM sessions;

-- Ids are made by the program and rise in the order of commits; `seq` counts within a session, without gaps.
CREATE TABLE messages (
    message_id            INTEGER PRIMARY KEY,
    session_id            TEXT NOT NULL,
    seq                   INTEGER NOT NULL,
    role                  TEXT NOT NULL,
    content               TEXT,
    parts                 TEXT,
    tool_call_id          TEXT,
    tool_calls            TEXT,
    tool_name             TEXT,
    effect_disposition    TEXT,
    sent_at               INTEGER NOT NULL,
    token_count           INTEGER,
    finish_reason         TEXT,
    reasoning             TEXT,
    reasoning_content     TEXT,
    reasoning_details     TEXT,
    codex_reasoning_items TEXT,
    codex_message_items   TEXT,
    api_content           TEXT,
    platform_message_id   TEXT,
    observed              INTEGER NOT NULL DEFAULT 0,
    hidden_because        TEXT,
    hidden_by             INTEGER,
    edited_at             INTEGER,
    extra                 TEXT,
    UNIQUE (session_id, seq)
) STRICT;

-- All that a report of some days asks for; it grows at its end only.
CREATE INDEX messages_by_time ON messages (sent_at, session_id, tool_name);

CREATE INDEX messages_by_platform_id ON messages (session_id, platform_message_id)
    WHERE platform_message_id IS NOT NULL;

-- A message as it was before it was edited on its platform.
CREATE TABLE message_versions (
    message_id INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    content    TEXT,
    parts      TEXT,
    replaced_at INTEGER NOT NULL,
    PRIMARY KEY (message_id, version)
) STRICT, WITHOUT ROWID;

-- One use of a model; the id makes that a repetition counts once.
CREATE TABLE usage_events (
    event_id           TEXT PRIMARY KEY,
    session_id         TEXT NOT NULL,
    at                 INTEGER NOT NULL,
    task               TEXT NOT NULL,
    model              TEXT,
    provider           TEXT,
    base_url           TEXT,
    billing_mode       TEXT,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    api_calls          INTEGER NOT NULL,
    estimated_cost_usd REAL,
    actual_cost_usd    REAL,
    cost_status        TEXT NOT NULL,
    cost_source        TEXT,
    pricing_version    TEXT
) STRICT;

CREATE INDEX usage_by_session ON usage_events (session_id, at);
CREATE INDEX usage_by_time ON usage_events (at);

-- Indexed messages that were changed or removed since; what is new needs no note, its id is the highest.
CREATE TABLE index_changes (
    change_id  INTEGER PRIMARY KEY,
    message_id INTEGER NOT NULL
) STRICT;

-- Somebody was erased: what they sent before must not come back with a late delivery.
CREATE TABLE tombstones (
    subject    TEXT PRIMARY KEY,
    erased_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Whoever adds messages asks whether anybody was erased since.
CREATE INDEX tombstones_by_time ON tombstones (erased_at);
