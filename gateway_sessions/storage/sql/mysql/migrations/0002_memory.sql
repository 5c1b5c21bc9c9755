-- What was said in sessions, what it cost, and what sessions are called.
-- Instants are microseconds since the epoch, in UTC.

ALTER TABLE sessions ADD COLUMN title VARCHAR(120);
ALTER TABLE sessions ADD COLUMN title_by LONGTEXT;
ALTER TABLE sessions ADD COLUMN model LONGTEXT;
ALTER TABLE sessions ADD COLUMN model_config LONGTEXT;
ALTER TABLE sessions ADD COLUMN system_prompt LONGTEXT;
ALTER TABLE sessions ADD COLUMN billing_provider LONGTEXT;
ALTER TABLE sessions ADD COLUMN billing_base_url LONGTEXT;
ALTER TABLE sessions ADD COLUMN billing_mode LONGTEXT;
ALTER TABLE sessions ADD COLUMN pinned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN archived BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN extra LONGTEXT;

-- Only for its index: a session is continued once.
ALTER TABLE sessions ADD COLUMN continues VARCHAR(128)
    GENERATED ALWAYS AS (CASE WHEN relation = 'continuation' THEN parent_session_id END) VIRTUAL;

CREATE UNIQUE INDEX sessions_by_title ON sessions (title, owner);
CREATE UNIQUE INDEX sessions_continuation ON sessions (continues);
CREATE INDEX sessions_by_owner ON sessions (owner);
CREATE INDEX sessions_by_source ON sessions (source);
CREATE INDEX sessions_by_start ON sessions (started_at, session_id);
CREATE INDEX sessions_archived ON sessions (archived);

-- What a session's messages and its use add up to: written with every message, so it has rows of its own.
CREATE TABLE totals (
    session_id         VARCHAR(128) PRIMARY KEY,
    last_active        BIGINT NOT NULL,
    last_seq           BIGINT NOT NULL DEFAULT 0,
    message_count      BIGINT NOT NULL DEFAULT 0,
    tool_call_count    BIGINT NOT NULL DEFAULT 0,
    text_bytes         BIGINT NOT NULL DEFAULT 0,
    rewind_count       BIGINT NOT NULL DEFAULT 0,
    preview            LONGTEXT,
    input_tokens       BIGINT NOT NULL DEFAULT 0,
    output_tokens      BIGINT NOT NULL DEFAULT 0,
    cache_read_tokens  BIGINT NOT NULL DEFAULT 0,
    cache_write_tokens BIGINT NOT NULL DEFAULT 0,
    reasoning_tokens   BIGINT NOT NULL DEFAULT 0,
    api_call_count     BIGINT NOT NULL DEFAULT 0,
    estimated_cost_usd DOUBLE,
    actual_cost_usd    DOUBLE,
    cost_status        LONGTEXT,
    cost_source        LONGTEXT,
    pricing_version    LONGTEXT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX totals_recent ON totals (last_active, session_id);

INSERT INTO totals (session_id, last_active) SELECT session_id, coalesce(ended_at, started_at) FROM sessions;

-- Ids are made by the program and rise in the order of commits; `seq` counts within a session, without gaps.
CREATE TABLE messages (
    message_id            BIGINT PRIMARY KEY,
    session_id            VARCHAR(128) NOT NULL,
    seq                   BIGINT NOT NULL,
    role                  LONGTEXT NOT NULL,
    content               LONGTEXT,
    parts                 LONGTEXT,
    tool_call_id          LONGTEXT,
    tool_calls            LONGTEXT,
    tool_name             LONGTEXT,
    effect_disposition    LONGTEXT,
    sent_at               BIGINT NOT NULL,
    token_count           BIGINT,
    finish_reason         LONGTEXT,
    reasoning             LONGTEXT,
    reasoning_content     LONGTEXT,
    reasoning_details     LONGTEXT,
    codex_reasoning_items LONGTEXT,
    codex_message_items   LONGTEXT,
    api_content           LONGTEXT,
    platform_message_id   LONGTEXT,
    observed              BIGINT NOT NULL DEFAULT 0,
    hidden_because        LONGTEXT,
    hidden_by             BIGINT,
    edited_at             BIGINT,
    extra                 LONGTEXT,
    UNIQUE (session_id, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- All that a report of some days asks for; it grows at its end only.
CREATE INDEX messages_by_time ON messages (sent_at, session_id, tool_name(128));

CREATE INDEX messages_by_platform_id ON messages (session_id, platform_message_id(128));

-- A message as it was before it was edited on its platform.
CREATE TABLE message_versions (
    message_id BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    content    LONGTEXT,
    parts      LONGTEXT,
    replaced_at BIGINT NOT NULL,
    PRIMARY KEY (message_id, version)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One use of a model; the id makes that a repetition counts once.
CREATE TABLE usage_events (
    event_id           VARBINARY(1024) PRIMARY KEY,
    session_id         VARCHAR(128) NOT NULL,
    at                 BIGINT NOT NULL,
    task               LONGTEXT NOT NULL,
    model              LONGTEXT,
    provider           LONGTEXT,
    base_url           LONGTEXT,
    billing_mode       LONGTEXT,
    input_tokens       BIGINT NOT NULL,
    output_tokens      BIGINT NOT NULL,
    cache_read_tokens  BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    reasoning_tokens   BIGINT NOT NULL,
    api_calls          BIGINT NOT NULL,
    estimated_cost_usd DOUBLE,
    actual_cost_usd    DOUBLE,
    cost_status        LONGTEXT NOT NULL,
    cost_source        LONGTEXT,
    pricing_version    LONGTEXT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX usage_by_session ON usage_events (session_id, at);
CREATE INDEX usage_by_time ON usage_events (at);

-- Indexed messages that were changed or removed since; what is new needs no note, its id is the highest.
CREATE TABLE index_changes (
    change_id  BIGINT PRIMARY KEY,
    message_id BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Somebody was erased: what they sent before must not come back with a late delivery.
CREATE TABLE tombstones (
    subject    VARBINARY(3000) PRIMARY KEY,
    erased_at  BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Whoever adds messages asks whether anybody was erased since.
CREATE INDEX tombstones_by_time ON tombstones (erased_at);
