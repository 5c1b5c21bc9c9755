-- What the gateway says or begins by itself when its time comes, once or again and again. `name` is unique, so that
-- asking twice does not do it twice; the row of what was done once stays for a while, so that a repetition is known.
-- Instants are microseconds since the epoch, in UTC.
CREATE TABLE schedules (
    name        TEXT PRIMARY KEY,
    kind        TEXT NOT NULL,
    session_key TEXT NOT NULL,
    owner       TEXT NOT NULL,
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,
    task        TEXT,
    timing      TEXT,
    state       TEXT NOT NULL,
    due_at      INTEGER,
    last_at     INTEGER,
    runs        INTEGER NOT NULL DEFAULT 0,
    version     INTEGER NOT NULL DEFAULT 1,
    created_at  INTEGER NOT NULL,
    settled_at  INTEGER,
    problem     TEXT
) STRICT;

CREATE INDEX schedules_due ON schedules (kind, due_at) WHERE state = 'waiting';
CREATE INDEX schedules_settled ON schedules (settled_at) WHERE settled_at IS NOT NULL;
