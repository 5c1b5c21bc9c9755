-- Several processes on one database: who they are, and what they tell each other. In a file there is one owner,
-- and none of this is used. Instants are microseconds since the epoch, in UTC.

-- An opening of the store that lives; `expires_at` goes by the server's clock.
CREATE TABLE nodes (
    epoch      INTEGER PRIMARY KEY,
    slot       INTEGER NOT NULL,
    name       TEXT NOT NULL,
    version    TEXT NOT NULL,
    first_id   INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

-- What one of them asks another to do with the turn that it runs. Only hints: whatever must hold stands elsewhere.
CREATE TABLE mail (
    mail_id     INTEGER PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    session_key TEXT NOT NULL,
    token       INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    body        TEXT
) STRICT;

CREATE INDEX mail_by_node ON mail (epoch, mail_id);

-- Which opening of the store is sending a reply.
ALTER TABLE outbox ADD COLUMN epoch INTEGER;
