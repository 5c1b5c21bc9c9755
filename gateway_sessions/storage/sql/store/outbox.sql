-- name: add_reply
-- Owe a reply.
INSERT INTO outbox (reply_id, session_key, session_id, seq, owner, platform, account, target, content, state, epoch,
    created_at, next_try_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: owed_replies
-- The next reply of each lane on an account, if it is due; the one owed for longest first.
SELECT {owed_reply} ORDER BY reply_id LIMIT ?

-- name: owed_replies_among
-- The next due replies of some lanes only.
SELECT {owed_reply} AND session_key IN ({each_of}) ORDER BY reply_id LIMIT ?

-- name: next_reply_due_among
-- The time at which the next reply of some lanes on an account becomes due.
SELECT min(next_try_at) FROM outbox
WHERE platform = ? AND account = ? AND state IN ('owed', 'sending') AND next_try_at > ?
  AND session_key IN ({each_of})

-- name: next_reply_due
-- The time at which the next reply on an account becomes due.
SELECT min(next_try_at) FROM outbox
WHERE platform = ? AND account = ? AND state IN ('owed', 'sending') AND next_try_at > ?

-- name: last_owed
-- The last reply that a lane is owed.
SELECT max(reply_id) FROM outbox WHERE session_key = ? AND state IN ('owed', 'sending')

-- name: lane_is_owed
-- Whether a lane is owed any reply.
SELECT 1 FROM outbox WHERE session_key = ? AND state IN ('owed', 'sending') LIMIT 1

-- name: reword_reply
-- Replace the content of an owed reply and let it be due.
UPDATE outbox SET content = ?, state = 'owed', next_try_at = ? WHERE reply_id = ? AND state IN ('owed', 'sending')

-- name: lanes_owed
-- The lanes that are owed a reply on an account.
SELECT DISTINCT session_key FROM outbox WHERE platform = ? AND account = ? AND state IN ('owed', 'sending')

-- name: accounts_owing
-- The number of owed replies by account.
SELECT platform, account, count(*) AS replies FROM outbox WHERE state IN ('owed', 'sending') GROUP BY platform, account

-- name: reply_sent
-- Settle a reply that the platform has accepted.
UPDATE outbox SET state = 'sent', settled_at = ?, sent_message_id = ?, content = NULL, attempts = ?
WHERE reply_id = ? AND state IN ('owed', 'sending')

-- name: reply_retry
-- Put a reply off until that time.
UPDATE outbox SET state = 'owed', attempts = ?, next_try_at = ?, unclear = ?, problem = ?
WHERE reply_id = ? AND state IN ('owed', 'sending')

-- name: reply_given_up
-- Make a dead letter of a reply, which is kept.
UPDATE outbox SET state = 'dead', attempts = ?, settled_at = ?, unclear = ?, problem = ?
WHERE reply_id = ? AND state IN ('owed', 'sending')

-- name: doubt_replies
-- Owe replies again that dead processes were sending: they may have been sent.
UPDATE outbox SET state = 'owed', attempts = attempts + 1, unclear = unclear + 1
WHERE state = 'sending' AND (epoch IS NULL OR epoch NOT IN ({each_number_of}))

-- name: mark_sending
-- Note that a reply is about to be sent, unless it was tried since it was read. The same opening may mark it again: it
-- marked the reply before, did not learn so, and never sent it.
UPDATE outbox SET state = 'sending', epoch = ?
WHERE reply_id = ? AND attempts = ? AND (state = 'owed' OR (state = 'sending' AND epoch = ?))

-- name: dead_replies
-- Replies that were given up, the newest first.
SELECT reply_id, session_key, session_id, seq, owner, platform, account, target, content, attempts, unclear, created_at,
    settled_at AS due_at, problem
FROM outbox WHERE state = 'dead' AND reply_id < ? ORDER BY reply_id DESC LIMIT ?

-- name: all_owed_replies
-- All owed replies, due or not, in the order of their ids.
SELECT reply_id, session_key, session_id, seq, owner, platform, account, target, content, attempts, unclear, created_at,
    next_try_at AS due_at, problem
FROM outbox WHERE state IN ('owed', 'sending') ORDER BY reply_id LIMIT ?

-- name: all_owed_to_lane
-- All owed replies of one lane.
SELECT reply_id, session_key, session_id, seq, owner, platform, account, target, content, attempts, unclear, created_at,
    next_try_at AS due_at, problem
FROM outbox WHERE session_key = ? AND state IN ('owed', 'sending') ORDER BY reply_id LIMIT ?

-- name: revive_reply
-- Owe a reply again that was given up.
UPDATE outbox SET state = 'owed', attempts = 0, next_try_at = ?, settled_at = NULL, problem = NULL
WHERE reply_id = ? AND state = 'dead'

-- name: forget_replies
-- Forget some replies that were sent long ago.
{forget_replies:
    SELECT reply_id FROM outbox WHERE reply_id < ? AND state = 'sent' AND settled_at < ?
    ORDER BY reply_id LIMIT ?}

-- name: reply_states
-- The number of replies in each state.
SELECT state, count(*) FROM outbox GROUP BY state
