-- What people sent and what they are owed: the queue of each lane, and the replies on their way out.
-- Instants are microseconds since the epoch, in UTC.

ALTER TABLE lanes ADD COLUMN next_seq INTEGER NOT NULL DEFAULT 1;
ALTER TABLE lanes ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lanes ADD COLUMN ready_at INTEGER;

-- Lanes whose next turn may begin; one that runs a turn, or waits for nothing, is not among them.
CREATE INDEX lanes_ready ON lanes (ready_at) WHERE ready_at IS NOT NULL;

-- Everything that was ever accepted, in the order of commits. `seq` counts within a lane, without gaps; `place`
-- is the order of its turns. A row stays for a while after it is settled, so that a repetition is known.
CREATE TABLE inbox (
    item_id       INTEGER PRIMARY KEY,
    session_key   TEXT NOT NULL,
    seq           INTEGER NOT NULL,
    place         INTEGER NOT NULL,
    event         TEXT,
    owner         TEXT NOT NULL,
    sender        TEXT NOT NULL,
    kind          TEXT NOT NULL,
    solo          INTEGER NOT NULL,
    media         INTEGER NOT NULL,
    merged_into   INTEGER,
    messages      INTEGER NOT NULL,
    characters    INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    admitted_at   INTEGER NOT NULL,
    ready_at      INTEGER NOT NULL,
    token         INTEGER,
    transcript_id INTEGER,
    payload       TEXT,
    outcome       TEXT,
    settled_at    INTEGER,
    settled_by    TEXT,
    problem       TEXT
) STRICT;

CREATE UNIQUE INDEX inbox_events ON inbox (event) WHERE event IS NOT NULL;
CREATE INDEX inbox_open ON inbox (session_key, place) WHERE outcome IS NULL;
CREATE INDEX inbox_dead ON inbox (item_id) WHERE outcome = 'dead';

-- What is owed to people. The row of a reply that was sent stays for a while, for whoever asks.
CREATE TABLE outbox (
    reply_id        INTEGER PRIMARY KEY,
    session_key     TEXT NOT NULL,
    session_id      TEXT,
    seq             INTEGER,
    owner           TEXT NOT NULL,
    platform        TEXT NOT NULL,
    account         TEXT NOT NULL,
    target          TEXT NOT NULL,
    content         TEXT,
    state           TEXT NOT NULL,
    attempts        INTEGER NOT NULL DEFAULT 0,
    unclear         INTEGER NOT NULL DEFAULT 0,
    created_at      INTEGER NOT NULL,
    next_try_at     INTEGER NOT NULL,
    settled_at      INTEGER,
    sent_message_id TEXT,
    problem         TEXT
) STRICT;

CREATE INDEX outbox_owed ON outbox (platform, account, next_try_at) WHERE state IN ('owed', 'sending');
CREATE INDEX outbox_by_lane ON outbox (session_key, reply_id) WHERE state IN ('owed', 'sending');
CREATE INDEX outbox_dead ON outbox (reply_id) WHERE state = 'dead';
