-- name: dead_turn_of_lane
-- The messages of the turn that failed last on a lane.
SELECT item_id, seq, merged_into, admitted_at, payload FROM inbox
WHERE outcome = 'dead' AND session_key = ? AND settled_at =
    (SELECT max(settled_at) FROM inbox WHERE outcome = 'dead' AND session_key = ?)
ORDER BY seq

-- name: recent_turn_heads
-- The latest messages of people to the agent, with their extra fields.
SELECT seq, message_id, extra FROM messages
WHERE session_id = ? AND role = 'user' AND observed = 0 AND hidden_because IS NULL AND seq < ? ORDER BY seq DESC LIMIT ?

-- name: count_owed_to_lane
-- The number of replies that a lane is owed, counted up to a limit.
SELECT count(*) FROM (SELECT 1 FROM outbox WHERE session_key = ? AND state IN ('owed', 'sending') LIMIT ?) AS few
