-- What the gateway says or begins by itself when its time comes, once or again and again. `name` is unique, so that
-- asking twice does not do it twice; the row of what was done once stays for a while, so that a repetition is known.
-- Instants are microseconds since the epoch, in UTC.
CREATE TABLE schedules (
    name        VARBINARY(1024) PRIMARY KEY,
    kind        VARCHAR(32) NOT NULL,
    session_key VARBINARY(2560) NOT NULL,
    owner       VARBINARY(2560) NOT NULL,
    platform    VARBINARY(1024) NOT NULL,
    account     VARBINARY(1536) NOT NULL,
    task        LONGTEXT,
    timing      LONGTEXT,
    state       VARCHAR(32) NOT NULL,
    due_at      BIGINT,
    last_at     BIGINT,
    runs        BIGINT NOT NULL DEFAULT 0,
    version     BIGINT NOT NULL DEFAULT 1,
    created_at  BIGINT NOT NULL,
    settled_at  BIGINT,
    problem     LONGTEXT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX schedules_due ON schedules (state, kind, due_at);
CREATE INDEX schedules_settled ON schedules (settled_at);
