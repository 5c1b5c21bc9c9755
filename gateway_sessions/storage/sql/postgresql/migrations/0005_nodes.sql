-- Several processes on one database: who they are, and what they tell each other. In a file there is one owner,
-- and none of this is used. Instants are microseconds since the epoch, in UTC.

-- An opening of the store that lives; `expires_at` goes by the server's clock.
CREATE TABLE nodes (
    epoch      bigint PRIMARY KEY,
    slot       bigint NOT NULL,
    name       text COLLATE "C" NOT NULL,
    version    text COLLATE "C" NOT NULL,
    first_id   bigint NOT NULL,
    started_at bigint NOT NULL,
    expires_at bigint NOT NULL
);

-- What one of them asks another to do with the turn that it runs. Only hints: whatever must hold stands elsewhere.
CREATE TABLE mail (
    mail_id     bigint PRIMARY KEY,
    epoch       bigint NOT NULL,
    session_key text COLLATE "C" NOT NULL,
    token       bigint NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    body        text COLLATE "C"
);

CREATE INDEX mail_by_node ON mail (epoch, mail_id);

-- Which opening of the store is sending a reply.
ALTER TABLE outbox ADD COLUMN epoch bigint;
