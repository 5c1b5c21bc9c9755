-- What the gateway says or begins by itself when its time comes, once or again and again. `name` is unique, so that
-- asking twice does not do it twice; the row of what was done once stays for a while, so that a repetition is known.
-- Instants are microseconds since the epoch, in UTC.
CREATE TABLE schedules (
    name        text COLLATE "C" PRIMARY KEY,
    kind        text COLLATE "C" NOT NULL,
    session_key text COLLATE "C" NOT NULL,
    owner       text COLLATE "C" NOT NULL,
    platform    text COLLATE "C" NOT NULL,
    account     text COLLATE "C" NOT NULL,
    task        text COLLATE "C",
    timing      text COLLATE "C",
    state       text COLLATE "C" NOT NULL,
    due_at      bigint,
    last_at     bigint,
    runs        bigint NOT NULL DEFAULT 0,
    version     bigint NOT NULL DEFAULT 1,
    created_at  bigint NOT NULL,
    settled_at  bigint,
    problem     text COLLATE "C"
);

CREATE INDEX schedules_due ON schedules (kind, due_at) WHERE state = 'waiting';
CREATE INDEX schedules_settled ON schedules (settled_at) WHERE settled_at IS NOT NULL;
