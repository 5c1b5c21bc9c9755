-- Sessions, the current entry of each lane, and the log of what happened to them.
-- Instants are microseconds since the epoch, in UTC.
--
-- An index holds 3072 bytes, so what is looked up by an index is bounded; what is longer is refused, never cut.
-- Keys are bytes: every collation that all servers know takes texts for equal that differ in spaces at their end.
-- There are no partial indexes. Where others have one, a column stands in front that tells its rows from the rest.
--
-- A definition cannot be undone, so each statement is a step of its own that may have been taken without being noted.

CREATE TABLE meta (
    name  VARBINARY(3000) PRIMARY KEY,
    value LONGTEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
    COMMENT = 'gateway_sessions';

-- Who changes anything locks rows of this table first, and never changes them. The first row is the store as a whole.
CREATE TABLE locks (
    lock_id BIGINT PRIMARY KEY
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- 1 and three times 1024 rows.
INSERT INTO locks (lock_id)
WITH RECURSIVE digits (digit) AS (SELECT 0 UNION ALL SELECT digit + 1 FROM digits WHERE digit < 15)
SELECT a.digit * 256 + b.digit * 16 + c.digit FROM digits AS a, digits AS b, digits AS c
WHERE a.digit * 256 + b.digit * 16 + c.digit <= 3072;

-- A lane lives as long as anything is known of it; its lease tells that a turn is running.
CREATE TABLE lanes (
    session_key      VARBINARY(2560) PRIMARY KEY,
    lease_epoch      BIGINT,
    lease_token      BIGINT NOT NULL DEFAULT 0,
    leased_at        BIGINT,
    attempts         BIGINT NOT NULL DEFAULT 0,
    moved_session_id VARCHAR(128)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX lanes_leased ON lanes (lease_epoch);
CREATE INDEX lanes_tried ON lanes (attempts);

-- One incarnation of a conversation; `entry` keeps the record as it was when the session ended.
CREATE TABLE sessions (
    session_id        VARCHAR(128) PRIMARY KEY,
    session_key       VARBINARY(2560),
    owner             VARBINARY(2560) NOT NULL,
    source            VARCHAR(512) NOT NULL,
    user_id           LONGTEXT,
    parent_session_id VARCHAR(128),
    relation          VARCHAR(32),
    started_at        BIGINT NOT NULL,
    ended_at          BIGINT,
    end_reason        LONGTEXT,
    ends              BIGINT NOT NULL DEFAULT 0,
    entry             LONGTEXT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX sessions_by_lane ON sessions (session_key, started_at);
CREATE INDEX sessions_by_parent ON sessions (parent_session_id);

-- The current session of each lane. A session belongs to at most one lane. `record` holds what no query asks for.
CREATE TABLE entries (
    entry_id           BIGINT PRIMARY KEY,
    session_key        VARBINARY(2560) NOT NULL UNIQUE,
    session_id         VARCHAR(128) NOT NULL UNIQUE,
    owner              VARBINARY(2560) NOT NULL,
    platform           VARBINARY(1024),
    state              VARCHAR(32) NOT NULL,
    state_since        BIGINT,
    due_at             BIGINT,
    policy_fingerprint LONGTEXT NOT NULL,
    record             LONGTEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX entries_due ON entries (due_at);
CREATE INDEX entries_by_owner ON entries (owner);

-- All that nearly every message changes of an entry. The rows are small and without an index of their own, so that
-- many lanes share a page and a batch of messages writes few of them. Without a last interaction, it is `updated_at`.
CREATE TABLE clocks (
    entry_id            BIGINT PRIMARY KEY,
    version             BIGINT NOT NULL,
    updated_at          BIGINT NOT NULL,
    last_interaction_at BIGINT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE transitions (
    change_id   BIGINT PRIMARY KEY,
    session_key VARBINARY(2560) NOT NULL,
    session_id  VARCHAR(128) NOT NULL,
    at          BIGINT NOT NULL,
    event       LONGTEXT NOT NULL,
    from_state  LONGTEXT,
    to_state    LONGTEXT NOT NULL,
    reason      LONGTEXT,
    actor       LONGTEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX transitions_by_lane ON transitions (session_key, change_id);
CREATE INDEX transitions_by_session ON transitions (session_id);

-- Calls of hooks that are still owed, or were given up.
CREATE TABLE hook_calls (
    idempotency_key VARBINARY(2048) PRIMARY KEY,
    hook            VARBINARY(1024) NOT NULL,
    session_key     VARBINARY(2560) NOT NULL,
    session_id      VARCHAR(128) NOT NULL,
    event           LONGTEXT NOT NULL,
    payload         LONGTEXT NOT NULL,
    state           VARCHAR(32) NOT NULL,
    attempts        BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    next_try_at     BIGINT NOT NULL,
    last_error      LONGTEXT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX hook_calls_owed ON hook_calls (state, hook, next_try_at);
