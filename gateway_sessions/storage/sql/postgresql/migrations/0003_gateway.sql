-- What people sent and what they are owed: the queue of each lane, and the replies on their way out.
-- Instants are microseconds since the epoch, in UTC.

ALTER TABLE lanes ADD COLUMN next_seq bigint NOT NULL DEFAULT 1;
ALTER TABLE lanes ADD COLUMN waiting bigint NOT NULL DEFAULT 0;
ALTER TABLE lanes ADD COLUMN ready_at bigint;

-- Lanes whose next turn may begin; one that runs a turn, or waits for nothing, is not among them.
CREATE INDEX lanes_ready ON lanes (ready_at) WHERE ready_at IS NOT NULL;

-- Everything that was ever accepted, in the order of commits. `seq` counts within a lane, without gaps; `place`
-- is the order of its turns. A row stays for a while after it is settled, so that a repetition is known.
CREATE TABLE inbox (
    item_id       bigint PRIMARY KEY,
    session_key   text COLLATE "C" NOT NULL,
    seq           bigint NOT NULL,
    place         bigint NOT NULL,
    event         text COLLATE "C",
    owner         text COLLATE "C" NOT NULL,
    sender        text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    solo          bigint NOT NULL,
    media         bigint NOT NULL,
    merged_into   bigint,
    messages      bigint NOT NULL,
    characters    bigint NOT NULL,
    last_at       bigint NOT NULL,
    admitted_at   bigint NOT NULL,
    ready_at      bigint NOT NULL,
    token         bigint,
    transcript_id bigint,
    payload       text COLLATE "C",
    outcome       text COLLATE "C",
    settled_at    bigint,
    settled_by    text COLLATE "C",
    problem       text COLLATE "C"
);

CREATE UNIQUE INDEX inbox_events ON inbox (event) WHERE event IS NOT NULL;
CREATE INDEX inbox_open ON inbox (session_key, place) WHERE outcome IS NULL;
CREATE INDEX inbox_dead ON inbox (item_id) WHERE outcome = 'dead';

-- What is owed to people. The row of a reply that was sent stays for a while, for whoever asks.
CREATE TABLE outbox (
    reply_id        bigint PRIMARY KEY,
    session_key     text COLLATE "C" NOT NULL,
    session_id      text COLLATE "C",
    seq             bigint,
    owner           text COLLATE "C" NOT NULL,
    platform        text COLLATE "C" NOT NULL,
    account         text COLLATE "C" NOT NULL,
    target          text COLLATE "C" NOT NULL,
    content         text COLLATE "C",
    state           text COLLATE "C" NOT NULL,
    attempts        bigint NOT NULL DEFAULT 0,
    unclear         bigint NOT NULL DEFAULT 0,
    created_at      bigint NOT NULL,
    next_try_at     bigint NOT NULL,
    settled_at      bigint,
    sent_message_id text COLLATE "C",
    problem         text COLLATE "C"
);

CREATE INDEX outbox_owed ON outbox (platform, account, next_try_at) WHERE state IN ('owed', 'sending');
CREATE INDEX outbox_by_lane ON outbox (session_key, reply_id) WHERE state IN ('owed', 'sending');
CREATE INDEX outbox_dead ON outbox (reply_id) WHERE state = 'dead';
