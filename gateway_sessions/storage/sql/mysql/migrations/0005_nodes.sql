-- Several processes on one database: who they are, and what they tell each other. In a file there is one owner,
-- and none of this is used. Instants are microseconds since the epoch, in UTC.

-- An opening of the store that lives; `expires_at` goes by the server's clock.
CREATE TABLE nodes (
    epoch      BIGINT PRIMARY KEY,
    slot       BIGINT NOT NULL,
    name       LONGTEXT NOT NULL,
    version    LONGTEXT NOT NULL,
    first_id   BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What one of them asks another to do with the turn that it runs. Only hints: whatever must hold stands elsewhere.
CREATE TABLE mail (
    mail_id     BIGINT PRIMARY KEY,
    epoch       BIGINT NOT NULL,
    session_key VARBINARY(2560) NOT NULL,
    token       BIGINT NOT NULL,
    kind        LONGTEXT NOT NULL,
    body        LONGTEXT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX mail_by_node ON mail (epoch, mail_id);

-- Which opening of the store is sending a reply.
ALTER TABLE outbox ADD COLUMN epoch BIGINT;
