-- Sessions, the current entry of each lane, and the log of what happened to them.
-- Instants are microseconds since the epoch, in UTC.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- A lane lives as long as anything is known of it; its lease tells that a turn is running.
CREATE TABLE lanes (
    session_key      TEXT PRIMARY KEY,
    lease_epoch      INTEGER,
    lease_token      INTEGER NOT NULL DEFAULT 0,
    leased_at        INTEGER,
    attempts         INTEGER NOT NULL DEFAULT 0,
    moved_session_id TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX lanes_leased ON lanes (lease_epoch) WHERE lease_epoch IS NOT NULL;
CREATE INDEX lanes_tried ON lanes (session_key) WHERE attempts > 0;

-- One incarnation of a conversation; `entry` keeps the record as it was when the session ended.
CREATE TABLE sessions (
    session_id        TEXT PRIMARY KEY,
    session_key       TEXT,
    owner             TEXT NOT NULL,
    source            TEXT NOT NULL,
    user_id           TEXT,
    parent_session_id TEXT,
    relation          TEXT,
    started_at        INTEGER NOT NULL,
    ended_at          INTEGER,
    end_reason        TEXT,
    ends              INTEGER NOT NULL DEFAULT 0,
    entry             TEXT
) STRICT;

CREATE INDEX sessions_by_lane ON sessions (session_key, started_at) WHERE session_key IS NOT NULL;
CREATE INDEX sessions_by_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;

-- The current session of each lane. A session belongs to at most one lane. `record` holds what no query asks for.
CREATE TABLE entries (
    entry_id           INTEGER PRIMARY KEY,
    session_key        TEXT NOT NULL UNIQUE,
    session_id         TEXT NOT NULL UNIQUE,
    owner              TEXT NOT NULL,
    platform           TEXT,
    state              TEXT NOT NULL,
    state_since        INTEGER,
    due_at             INTEGER,
    policy_fingerprint TEXT NOT NULL,
    record             TEXT NOT NULL
) STRICT;

CREATE INDEX entries_due ON entries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX entries_by_owner ON entries (owner);

-- All that nearly every message changes of an entry. The rows are small and without an index of their own, so that
-- many lanes share a page and a batch of messages writes few of them. Without a last interaction, it is `updated_at`.
CREATE TABLE clocks (
    entry_id            INTEGER PRIMARY KEY,
    version             INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    last_interaction_at INTEGER
) STRICT;

CREATE TABLE transitions (
    change_id   INTEGER PRIMARY KEY,
    session_key TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    at          INTEGER NOT NULL,
    event       TEXT NOT NULL,
    from_state  TEXT,
    to_state    TEXT NOT NULL,
    reason      TEXT,
    actor       TEXT NOT NULL
) STRICT;

CREATE INDEX transitions_by_lane ON transitions (session_key, change_id);
CREATE INDEX transitions_by_session ON transitions (session_id);

-- Calls of hooks that are still owed, or were given up.
CREATE TABLE hook_calls (
    idempotency_key TEXT PRIMARY KEY,
    hook            TEXT NOT NULL,
    session_key     TEXT NOT NULL,
    session_id      TEXT NOT NULL,
    event           TEXT NOT NULL,
    payload         TEXT NOT NULL,
    state           TEXT NOT NULL,
    attempts        INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    next_try_at     INTEGER NOT NULL,
    last_error      TEXT
) STRICT;

CREATE INDEX hook_calls_owed ON hook_calls (hook, next_try_at) WHERE state = 'owed';
