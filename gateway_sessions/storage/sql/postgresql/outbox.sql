-- name: add_reply
-- Something is owed to somebody.
INSERT INTO outbox (reply_id, session_key, session_id, seq, owner, platform, account, target, content, state, created_at,
    next_try_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)

-- name: owed_replies
-- The next reply of each lane on an account, as far as its time has come; the longest owed first.
SELECT reply_id, session_key, session_id, seq, owner, platform, account, target, content, state, attempts, unclear,
    created_at, next_try_at
FROM outbox AS reply
WHERE platform = $1 AND account = $2 AND state IN ('owed', 'sending') AND next_try_at <= $3
  AND NOT EXISTS (SELECT 1 FROM outbox AS earlier WHERE earlier.session_key = reply.session_key
      AND earlier.reply_id < reply.reply_id AND earlier.state IN ('owed', 'sending'))
ORDER BY reply_id LIMIT $4

-- name: next_reply_due
-- When there is something to send on an account that is not due yet.
SELECT min(next_try_at) FROM outbox
WHERE platform = $1 AND account = $2 AND state IN ('owed', 'sending') AND next_try_at > $3

-- name: lane_is_owed
-- Whether a lane is owed anything.
SELECT 1 FROM outbox WHERE session_key = $1 AND state IN ('owed', 'sending') LIMIT 1

-- name: reword_reply
-- It says something else, and is tried at once.
UPDATE outbox SET content = $1, state = 'owed', next_try_at = $2 WHERE reply_id = $3 AND state IN ('owed', 'sending')

-- name: lanes_owed
-- Which lanes are owed something.
SELECT DISTINCT session_key FROM outbox WHERE platform = $1 AND account = $2 AND state IN ('owed', 'sending')

-- name: accounts_owing
-- Where something is owed.
SELECT platform, account, count(*) FROM outbox WHERE state IN ('owed', 'sending') GROUP BY platform, account

-- name: reply_sent
-- It is with the platform.
UPDATE outbox SET state = 'sent', settled_at = $1, sent_message_id = $2, content = NULL, attempts = $3
WHERE reply_id = $4 AND state IN ('owed', 'sending')

-- name: reply_retry
-- It is tried again, at that time.
UPDATE outbox SET state = 'owed', attempts = $1, next_try_at = $2, unclear = $3, problem = $4
WHERE reply_id = $5 AND state IN ('owed', 'sending')

-- name: reply_given_up
-- It was never delivered, as far as anybody knows; it is kept.
UPDATE outbox SET state = 'dead', attempts = $1, settled_at = $2, unclear = $3, problem = $4
WHERE reply_id = $5 AND state IN ('owed', 'sending')

-- name: doubt_replies
-- Their process is gone: nobody knows whether they were sent.
UPDATE outbox SET state = 'owed', attempts = attempts + 1, unclear = unclear + 1 WHERE state = 'sending'

-- name: mark_sending
-- It is about to be handed to the platform, unless that has happened since it was looked for.
UPDATE outbox SET state = 'sending' WHERE reply_id = $1 AND state = 'owed' AND attempts = $2

-- name: dead_replies
-- Replies that were given up, the newest first.
SELECT reply_id, session_key, session_id, seq, owner, platform, account, target, content, state, attempts, unclear,
    created_at, settled_at, problem
FROM outbox WHERE state = 'dead' AND reply_id < $1 ORDER BY reply_id DESC LIMIT $2

-- name: revive_reply
-- It is tried again.
UPDATE outbox SET state = 'owed', attempts = 0, next_try_at = $1, settled_at = NULL, problem = NULL
WHERE reply_id = $2 AND state = 'dead'

-- name: forget_replies
-- Whatever was sent long ago is not known any more.
DELETE FROM outbox WHERE reply_id IN (
    SELECT reply_id FROM outbox WHERE reply_id < $1 AND state = 'sent' AND settled_at < $2 ORDER BY reply_id LIMIT $3)

-- name: reply_states
-- How many replies are in which state.
SELECT state, count(*) FROM outbox GROUP BY state
