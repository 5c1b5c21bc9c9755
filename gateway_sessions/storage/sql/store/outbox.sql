-- name: add_reply
-- Something is owed to somebody.
INSERT INTO outbox (reply_id, session_key, session_id, seq, owner, platform, account, target, content, state, epoch,
    created_at, next_try_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: owed_replies
-- The next reply of each lane on an account, as far as its time has come; the longest owed first.
SELECT {owed_reply} ORDER BY reply_id LIMIT ?

-- name: owed_replies_among
-- The same of some lanes only.
SELECT {owed_reply} AND session_key IN ({each_of}) ORDER BY reply_id LIMIT ?

-- name: next_reply_due_among
-- When there is something to send on an account for some lanes that is not due yet.
SELECT min(next_try_at) FROM outbox
WHERE platform = ? AND account = ? AND state IN ('owed', 'sending') AND next_try_at > ?
  AND session_key IN ({each_of})

-- name: next_reply_due
-- When there is something to send on an account that is not due yet.
SELECT min(next_try_at) FROM outbox
WHERE platform = ? AND account = ? AND state IN ('owed', 'sending') AND next_try_at > ?

-- name: last_owed
-- The last reply that a lane is owed.
SELECT max(reply_id) FROM outbox WHERE session_key = ? AND state IN ('owed', 'sending')

-- name: lane_is_owed
-- Whether a lane is owed anything.
SELECT 1 FROM outbox WHERE session_key = ? AND state IN ('owed', 'sending') LIMIT 1

-- name: reword_reply
-- It says something else, and is tried at once.
UPDATE outbox SET content = ?, state = 'owed', next_try_at = ? WHERE reply_id = ? AND state IN ('owed', 'sending')

-- name: lanes_owed
-- Which lanes are owed something.
SELECT DISTINCT session_key FROM outbox WHERE platform = ? AND account = ? AND state IN ('owed', 'sending')

-- name: accounts_owing
-- Where something is owed.
SELECT platform, account, count(*) FROM outbox WHERE state IN ('owed', 'sending') GROUP BY platform, account

-- name: reply_sent
-- It is with the platform.
UPDATE outbox SET state = 'sent', settled_at = ?, sent_message_id = ?, content = NULL, attempts = ?
WHERE reply_id = ? AND state IN ('owed', 'sending')

-- name: reply_retry
-- It is tried again, at that time.
UPDATE outbox SET state = 'owed', attempts = ?, next_try_at = ?, unclear = ?, problem = ?
WHERE reply_id = ? AND state IN ('owed', 'sending')

-- name: reply_given_up
-- It was never delivered, as far as anybody knows; it is kept.
UPDATE outbox SET state = 'dead', attempts = ?, settled_at = ?, unclear = ?, problem = ?
WHERE reply_id = ? AND state IN ('owed', 'sending')

-- name: doubt_replies
-- Their process is gone: nobody knows whether they were sent.
UPDATE outbox SET state = 'owed', attempts = attempts + 1, unclear = unclear + 1
WHERE state = 'sending' AND (epoch IS NULL OR epoch NOT IN ({each_number_of}))

-- name: mark_sending
-- It is about to be handed to the platform, unless that has happened since it was looked for. What the same opening
-- has marked before, and is not sending, was never sent: it did not hear that the mark was made.
UPDATE outbox SET state = 'sending', epoch = ?
WHERE reply_id = ? AND attempts = ? AND (state = 'owed' OR (state = 'sending' AND epoch = ?))

-- name: dead_replies
-- Replies that were given up, the newest first.
SELECT reply_id, session_key, session_id, seq, owner, platform, account, target, content, state, attempts, unclear,
    created_at, settled_at, problem
FROM outbox WHERE state = 'dead' AND reply_id < ? ORDER BY reply_id DESC LIMIT ?

-- name: all_owed_replies
-- All that is owed, whatever its time, in the order in which it came to be.
SELECT reply_id, session_key, session_id, seq, owner, platform, account, target, content, state, attempts, unclear,
    created_at, next_try_at, problem
FROM outbox WHERE state IN ('owed', 'sending') ORDER BY reply_id LIMIT ?

-- name: all_owed_to_lane
-- The same of one lane.
SELECT reply_id, session_key, session_id, seq, owner, platform, account, target, content, state, attempts, unclear,
    created_at, next_try_at, problem
FROM outbox WHERE session_key = ? AND state IN ('owed', 'sending') ORDER BY reply_id LIMIT ?

-- name: revive_reply
-- It is tried again.
UPDATE outbox SET state = 'owed', attempts = 0, next_try_at = ?, settled_at = NULL, problem = NULL
WHERE reply_id = ? AND state = 'dead'

-- name: forget_replies
-- Whatever was sent long ago is not known any more.
{forget_replies:
    SELECT reply_id FROM outbox WHERE reply_id < ? AND state = 'sent' AND settled_at < ?
    ORDER BY reply_id LIMIT ?}

-- name: reply_states
-- How many replies are in which state.
SELECT state, count(*) FROM outbox GROUP BY state
