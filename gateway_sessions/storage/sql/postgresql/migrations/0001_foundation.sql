-- Sessions, the current entry of each lane, and the log of what happened to them.
-- Instants are microseconds since the epoch, in UTC.

CREATE TABLE meta (
    name  text COLLATE "C" PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);

-- A lane lives as long as anything is known of it; its lease tells that a turn is running.
CREATE TABLE lanes (
    session_key      text COLLATE "C" PRIMARY KEY,
    lease_epoch      bigint,
    lease_token      bigint NOT NULL DEFAULT 0,
    leased_at        bigint,
    attempts         bigint NOT NULL DEFAULT 0,
    moved_session_id text COLLATE "C"
) WITH (fillfactor = 70);

CREATE INDEX lanes_leased ON lanes (lease_epoch) WHERE lease_epoch IS NOT NULL;
CREATE INDEX lanes_tried ON lanes (session_key) WHERE attempts > 0;

-- One incarnation of a conversation; `entry` keeps the record as it was when the session ended.
CREATE TABLE sessions (
    session_id        text COLLATE "C" PRIMARY KEY,
    session_key       text COLLATE "C",
    owner             text COLLATE "C" NOT NULL,
    source            text COLLATE "C" NOT NULL,
    user_id           text COLLATE "C",
    parent_session_id text COLLATE "C",
    relation          text COLLATE "C",
    started_at        bigint NOT NULL,
    ended_at          bigint,
    end_reason        text COLLATE "C",
    ends              bigint NOT NULL DEFAULT 0,
    entry             text COLLATE "C"
);

CREATE INDEX sessions_by_lane ON sessions (session_key, started_at) WHERE session_key IS NOT NULL;
CREATE INDEX sessions_by_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;

-- The current session of each lane. A session belongs to at most one lane. `record` holds what no query asks for.
CREATE TABLE entries (
    entry_id           bigint PRIMARY KEY,
    session_key        text COLLATE "C" NOT NULL UNIQUE,
    session_id         text COLLATE "C" NOT NULL UNIQUE,
    owner              text COLLATE "C" NOT NULL,
    platform           text COLLATE "C",
    state              text COLLATE "C" NOT NULL,
    state_since        bigint,
    due_at             bigint,
    policy_fingerprint text COLLATE "C" NOT NULL,
    record             text COLLATE "C" NOT NULL
);

CREATE INDEX entries_due ON entries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX entries_by_owner ON entries (owner);

-- All that nearly every message changes of an entry. The rows are small and without an index of their own, so that
-- many lanes share a page and a batch of messages writes few of them. Without a last interaction, it is `updated_at`.
CREATE TABLE clocks (
    entry_id            bigint PRIMARY KEY,
    version             bigint NOT NULL,
    updated_at          bigint NOT NULL,
    last_interaction_at bigint
) WITH (fillfactor = 70);

CREATE TABLE transitions (
    change_id   bigint PRIMARY KEY,
    session_key text COLLATE "C" NOT NULL,
    session_id  text COLLATE "C" NOT NULL,
    at          bigint NOT NULL,
    event       text COLLATE "C" NOT NULL,
    from_state  text COLLATE "C",
    to_state    text COLLATE "C" NOT NULL,
    reason      text COLLATE "C",
    actor       text COLLATE "C" NOT NULL
);

CREATE INDEX transitions_by_lane ON transitions (session_key, change_id);
CREATE INDEX transitions_by_session ON transitions (session_id);

-- Calls of hooks that are still owed, or were given up.
CREATE TABLE hook_calls (
    idempotency_key text COLLATE "C" PRIMARY KEY,
    hook            text COLLATE "C" NOT NULL,
    session_key     text COLLATE "C" NOT NULL,
    session_id      text COLLATE "C" NOT NULL,
    event           text COLLATE "C" NOT NULL,
    payload         text COLLATE "C" NOT NULL,
    state           text COLLATE "C" NOT NULL,
    attempts        bigint NOT NULL,
    created_at      bigint NOT NULL,
    next_try_at     bigint NOT NULL,
    last_error      text COLLATE "C"
);

CREATE INDEX hook_calls_owed ON hook_calls (hook, next_try_at) WHERE state = 'owed';
