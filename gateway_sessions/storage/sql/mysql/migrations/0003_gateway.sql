-- What people sent and what they are owed: the queue of each lane, and the replies on their way out.
-- Instants are microseconds since the epoch, in UTC.

ALTER TABLE lanes ADD COLUMN next_seq BIGINT NOT NULL DEFAULT 1;
ALTER TABLE lanes ADD COLUMN waiting BIGINT NOT NULL DEFAULT 0;
ALTER TABLE lanes ADD COLUMN ready_at BIGINT;

-- Lanes whose next turn may begin; one that runs a turn, or waits for nothing, is not among them.
CREATE INDEX lanes_ready ON lanes (ready_at);

-- Everything that was ever accepted, in the order of commits. `seq` counts within a lane, without gaps; `place`
-- is the order of its turns. A row stays for a while after it is settled, so that a repetition is known.
CREATE TABLE inbox (
    item_id       BIGINT PRIMARY KEY,
    session_key   VARBINARY(2560) NOT NULL,
    seq           BIGINT NOT NULL,
    place         BIGINT NOT NULL,
    event         VARBINARY(3000),
    owner         VARBINARY(2560) NOT NULL,
    sender        VARBINARY(2048) NOT NULL,
    kind          LONGTEXT NOT NULL,
    solo          BIGINT NOT NULL,
    media         BIGINT NOT NULL,
    merged_into   BIGINT,
    messages      BIGINT NOT NULL,
    characters    BIGINT NOT NULL,
    last_at       BIGINT NOT NULL,
    admitted_at   BIGINT NOT NULL,
    ready_at      BIGINT NOT NULL,
    token         BIGINT,
    transcript_id BIGINT,
    payload       LONGTEXT,
    outcome       VARCHAR(32),
    settled_at    BIGINT,
    settled_by    LONGTEXT,
    problem       LONGTEXT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE UNIQUE INDEX inbox_events ON inbox (event);
CREATE INDEX inbox_open ON inbox (session_key, outcome, place);
CREATE INDEX inbox_dead ON inbox (outcome, item_id);

-- What is owed to people. The row of a reply that was sent stays for a while, for whoever asks.
CREATE TABLE outbox (
    reply_id        BIGINT PRIMARY KEY,
    session_key     VARBINARY(2560) NOT NULL,
    session_id      VARCHAR(128),
    seq             BIGINT,
    owner           VARBINARY(2560) NOT NULL,
    platform        VARBINARY(1024) NOT NULL,
    account         VARBINARY(1536) NOT NULL,
    target          LONGTEXT NOT NULL,
    content         LONGTEXT,
    state           VARCHAR(32) NOT NULL,
    attempts        BIGINT NOT NULL DEFAULT 0,
    unclear         BIGINT NOT NULL DEFAULT 0,
    created_at      BIGINT NOT NULL,
    next_try_at     BIGINT NOT NULL,
    settled_at      BIGINT,
    sent_message_id LONGTEXT,
    problem         LONGTEXT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX outbox_owed ON outbox (platform, account, state, next_try_at);
CREATE INDEX outbox_by_lane ON outbox (session_key, state, reply_id);
CREATE INDEX outbox_dead ON outbox (state, reply_id);
