-- What was said in sessions, what it cost, and what sessions are called.
-- Instants are microseconds since the epoch, in UTC.

ALTER TABLE sessions ADD COLUMN title text COLLATE "C";
ALTER TABLE sessions ADD COLUMN title_by text COLLATE "C";
ALTER TABLE sessions ADD COLUMN model text COLLATE "C";
ALTER TABLE sessions ADD COLUMN model_config text COLLATE "C";
ALTER TABLE sessions ADD COLUMN system_prompt text COLLATE "C";
ALTER TABLE sessions ADD COLUMN billing_provider text COLLATE "C";
ALTER TABLE sessions ADD COLUMN billing_base_url text COLLATE "C";
ALTER TABLE sessions ADD COLUMN billing_mode text COLLATE "C";
ALTER TABLE sessions ADD COLUMN pinned bigint NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN archived bigint NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN extra text COLLATE "C";

CREATE UNIQUE INDEX sessions_by_title ON sessions (title, owner) WHERE title IS NOT NULL;
CREATE UNIQUE INDEX sessions_continuation ON sessions (parent_session_id) WHERE relation = 'continuation';
CREATE INDEX sessions_by_owner ON sessions (owner);
CREATE INDEX sessions_by_source ON sessions (source);
CREATE INDEX sessions_by_start ON sessions (started_at, session_id);
CREATE INDEX sessions_archived ON sessions (archived) WHERE archived = 1;

-- What a session's messages and its use add up to: written with every message, so it has rows of its own.
CREATE TABLE totals (
    session_id         text COLLATE "C" PRIMARY KEY,
    last_active        bigint NOT NULL,
    last_seq           bigint NOT NULL DEFAULT 0,
    message_count      bigint NOT NULL DEFAULT 0,
    tool_call_count    bigint NOT NULL DEFAULT 0,
    text_bytes         bigint NOT NULL DEFAULT 0,
    rewind_count       bigint NOT NULL DEFAULT 0,
    preview            text COLLATE "C",
    input_tokens       bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    cache_read_tokens  bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    reasoning_tokens   bigint NOT NULL DEFAULT 0,
    api_call_count     bigint NOT NULL DEFAULT 0,
    estimated_cost_usd double precision,
    actual_cost_usd    double precision,
    cost_status        text COLLATE "C",
    cost_source        text COLLATE "C",
    pricing_version    text COLLATE "C"
) WITH (fillfactor = 70);

CREATE INDEX totals_recent ON totals (last_active, session_id);

INSERT INTO totals (session_id, last_active) SELECT session_id, coalesce(ended_at, started_at) FROM sessions;

-- Ids are made by the program and rise in the order of commits; `seq` counts within a session, without gaps.
CREATE TABLE messages (
    message_id            bigint PRIMARY KEY,
    session_id            text COLLATE "C" NOT NULL,
    seq                   bigint NOT NULL,
    role                  text COLLATE "C" NOT NULL,
    content               text COLLATE "C",
    parts                 text COLLATE "C",
    tool_call_id          text COLLATE "C",
    tool_calls            text COLLATE "C",
    tool_name             text COLLATE "C",
    effect_disposition    text COLLATE "C",
    sent_at               bigint NOT NULL,
    token_count           bigint,
    finish_reason         text COLLATE "C",
    reasoning             text COLLATE "C",
    reasoning_content     text COLLATE "C",
    reasoning_details     text COLLATE "C",
    codex_reasoning_items text COLLATE "C",
    codex_message_items   text COLLATE "C",
    api_content           text COLLATE "C",
    platform_message_id   text COLLATE "C",
    observed              bigint NOT NULL DEFAULT 0,
    hidden_because        text COLLATE "C",
    hidden_by             bigint,
    edited_at             bigint,
    extra                 text COLLATE "C",
    UNIQUE (session_id, seq)
);

-- All that a report of some days asks for; it grows at its end only.
CREATE INDEX messages_by_time ON messages (sent_at, session_id, tool_name);

CREATE INDEX messages_by_platform_id ON messages (session_id, platform_message_id)
    WHERE platform_message_id IS NOT NULL;

-- A message as it was before it was edited on its platform.
CREATE TABLE message_versions (
    message_id bigint NOT NULL,
    version    bigint NOT NULL,
    content    text COLLATE "C",
    parts      text COLLATE "C",
    replaced_at bigint NOT NULL,
    PRIMARY KEY (message_id, version)
);

-- One use of a model; the id makes that a repetition counts once.
CREATE TABLE usage_events (
    event_id           text COLLATE "C" PRIMARY KEY,
    session_id         text COLLATE "C" NOT NULL,
    at                 bigint NOT NULL,
    task               text COLLATE "C" NOT NULL,
    model              text COLLATE "C",
    provider           text COLLATE "C",
    base_url           text COLLATE "C",
    billing_mode       text COLLATE "C",
    input_tokens       bigint NOT NULL,
    output_tokens      bigint NOT NULL,
    cache_read_tokens  bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    reasoning_tokens   bigint NOT NULL,
    api_calls          bigint NOT NULL,
    estimated_cost_usd double precision,
    actual_cost_usd    double precision,
    cost_status        text COLLATE "C" NOT NULL,
    cost_source        text COLLATE "C",
    pricing_version    text COLLATE "C"
);

CREATE INDEX usage_by_session ON usage_events (session_id, at);
CREATE INDEX usage_by_time ON usage_events (at);

-- Indexed messages that were changed or removed since; what is new needs no note, its id is the highest.
CREATE TABLE index_changes (
    change_id  bigint PRIMARY KEY,
    message_id bigint NOT NULL
);

-- Somebody was erased: what they sent before must not come back with a late delivery.
CREATE TABLE tombstones (
    subject    text COLLATE "C" PRIMARY KEY,
    erased_at  bigint NOT NULL
);

-- Whoever adds messages asks whether anybody was erased since.
CREATE INDEX tombstones_by_time ON tombstones (erased_at);
