-- name: entries_without_session
-- Entries whose session has no row, with the columns for a new row.
SELECT session_id, session_key, owner, coalesce(platform, 'unknown') AS source, updated_at AS started_at FROM entries
JOIN clocks USING (entry_id) WHERE session_id NOT IN (SELECT session_id FROM sessions)

-- name: messages_without_session
-- Sessions without a row that have messages and are not being removed.
SELECT session_id, NULL AS session_key, 'main:unknown:local' AS owner, 'unknown' AS source,
    min(sent_at) AS started_at
FROM messages
WHERE session_id NOT IN (SELECT session_id FROM sessions)
    AND NOT EXISTS (SELECT 1 FROM meta WHERE name = {joined:'left_over:' {with} messages.session_id})
GROUP BY session_id

-- name: usage_without_session
-- Sessions without a row that have use of models.
SELECT session_id, NULL AS session_key, 'main:unknown:local' AS owner, 'unknown' AS source,
    min(at) AS started_at
FROM usage_events
WHERE session_id NOT IN (SELECT session_id FROM sessions) GROUP BY session_id

-- name: restore_session_row
-- Add a row for a session that lost its own.
INSERT INTO sessions (session_id, session_key, owner, source, started_at) VALUES (?, ?, ?, ?, ?)

-- name: sessions_without_totals
-- Sessions without totals.
SELECT session_id, started_at FROM sessions WHERE session_id NOT IN (SELECT session_id FROM totals)

-- name: totals_without_session
-- Totals of sessions that are gone.
SELECT session_id FROM totals WHERE session_id NOT IN (SELECT session_id FROM sessions)

-- name: delete_totals
-- Remove the totals of a session.
DELETE FROM totals WHERE session_id = ?

-- name: wrong_totals
-- Sessions whose totals are not those of their messages.
SELECT totals.session_id, count(message_id) AS messages_stored, coalesce(max(seq), 0) AS highest_seq FROM totals
LEFT JOIN messages ON messages.session_id = totals.session_id GROUP BY totals.session_id
HAVING max(totals.message_count) <> sum({flag:message_id IS NOT NULL AND hidden_because IS NULL})
    OR max(totals.last_seq) <> coalesce(max(seq), 0)

-- name: recount_totals
-- Count the messages of a session anew.
UPDATE totals SET text_bytes = ?,
    last_seq = (SELECT coalesce(max(seq), 0) FROM messages AS m WHERE m.session_id = totals.session_id),
    message_count = (SELECT count(*) FROM messages AS m
        WHERE m.session_id = totals.session_id AND hidden_because IS NULL),
    tool_call_count = (SELECT coalesce(sum({number_of_calls}), 0) FROM messages AS m
        WHERE m.session_id = totals.session_id AND hidden_because IS NULL)
WHERE session_id = ?

-- name: gaps_in_sessions
-- Sessions with places where a message is missing, and how many.
SELECT messages.session_id, last_seq - count(*) FROM messages
JOIN totals ON totals.session_id = messages.session_id
GROUP BY messages.session_id, last_seq HAVING last_seq > count(*)

-- name: sessions_with_parent
-- Sessions and their parents, the oldest first.
SELECT session_id, parent_session_id FROM sessions WHERE parent_session_id IS NOT NULL ORDER BY started_at, session_id

-- name: cut_from_parent
-- Take the parent from a session.
UPDATE sessions SET parent_session_id = NULL, relation = NULL WHERE session_id = ?

-- name: entries_without_clock
-- Entries without clocks.
SELECT entry_id, coalesce((SELECT last_active FROM totals WHERE totals.session_id = entries.session_id), 0)
FROM entries WHERE entry_id NOT IN (SELECT entry_id FROM clocks)

-- name: restore_clock (index)
-- Add clocks to an entry, with the times of its session.
INSERT INTO clocks (entry_id, version, updated_at) VALUES (?, 1, ?)

-- name: clocks_without_entry
-- Clocks of lanes that are gone.
SELECT entry_id FROM clocks WHERE entry_id NOT IN (SELECT entry_id FROM entries)

-- name: delete_clock
-- Remove the clocks of an entry that is gone.
DELETE FROM clocks WHERE entry_id = ?

-- name: queues_without_lane
-- Lanes without a row that have messages.
SELECT DISTINCT session_key FROM inbox WHERE session_key NOT IN (SELECT session_key FROM lanes)

-- name: restore_lane
-- Add a row for a lane that lost its own.
INSERT INTO lanes (session_key) VALUES (?)

-- name: turns_without_lease
-- Lanes with messages of a turn that does not run.
SELECT DISTINCT inbox.session_key FROM inbox LEFT JOIN lanes ON lanes.session_key = inbox.session_key
WHERE outcome IS NULL AND token IS NOT NULL AND (lease_epoch IS NULL OR NOT token {is} lease_token)

-- name: free_turns
-- Let messages of a lane wait again whose turns do not run.
UPDATE inbox SET token = NULL, messages = {greater}(messages, 1)
WHERE session_key = ? AND outcome IS NULL AND token IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.session_key = inbox.session_key
        AND lease_epoch IS NOT NULL AND lease_token = inbox.token)

-- name: messages_without_turn
-- Messages that joined a turn that is gone.
SELECT item_id FROM inbox AS item WHERE outcome IS NULL AND merged_into IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM inbox AS head WHERE head.session_key = item.session_key
        AND head.seq = item.merged_into AND head.outcome IS NULL AND head.token {is} item.token)

-- name: give_own_turn
-- Give a message a turn of its own.
UPDATE inbox SET merged_into = NULL WHERE item_id = ? AND outcome IS NULL AND merged_into IS NOT NULL

-- name: wrong_queues
-- Lanes with a wrong number of waiting turns, or a wrong time for the next one.
SELECT session_key FROM lanes
WHERE waiting <> (SELECT count(*) FROM inbox WHERE inbox.session_key = lanes.session_key AND outcome IS NULL
        AND token IS NULL AND merged_into IS NULL AND kind IN ('message', 'internal'))
    OR (ready_at IS NOT NULL) <> (lease_epoch IS NULL AND waiting > 0)

-- name: wrong_places
-- Lanes that would give a seq a second time, with the last seq that they gave.
SELECT inbox.session_key, max(seq) FROM inbox JOIN lanes ON lanes.session_key = inbox.session_key
GROUP BY inbox.session_key HAVING max(seq) >= max(next_seq)

-- name: impossible_items
-- Accepted messages whose columns contradict each other: they are in no state of the machine.
SELECT item_id FROM inbox WHERE NOT (
    (outcome IS NULL AND settled_at IS NULL AND (
        (kind IN ('message', 'internal') AND (token IS NULL OR merged_into IS NULL OR NOT ({was_steered})))
        OR (kind IN ('command', 'change') AND token IS NULL AND merged_into IS NULL)))
    OR (outcome IS NOT NULL AND settled_at IS NOT NULL AND (
        (kind IN ('message', 'internal')
            AND outcome IN ('turned', 'interrupted', 'rolled_back', 'cancelled', 'dropped', 'dead', 'observed'))
        OR (kind IN ('command', 'change') AND outcome IN ('applied', 'command', 'cancelled')))))

-- name: mend_item
-- Let an open message wait or run by itself; make a dead letter of a settled one if it has content to try again.
UPDATE inbox SET problem = CASE WHEN outcome IS NULL THEN NULL ELSE ? END,
    settled_at = CASE WHEN outcome IS NULL THEN NULL ELSE coalesce(settled_at, last_at) END,
    settled_by = CASE WHEN outcome IS NULL THEN NULL ELSE 'repair' END,
    merged_into = NULL,
    token = CASE WHEN kind IN ('command', 'change') THEN NULL ELSE token END,
    outcome = CASE WHEN outcome IS NULL THEN NULL
        WHEN payload IS NULL OR kind IN ('command', 'change') THEN 'cancelled' ELSE 'dead' END,
    kind = CASE WHEN kind IN ('internal', 'command', 'change') THEN kind ELSE 'message' END
WHERE item_id = ?

-- name: impossible_replies
-- Replies whose columns contradict each other.
SELECT reply_id FROM outbox
WHERE NOT (state IN ('owed', 'sending') AND settled_at IS NULL OR state IN ('sent', 'dead') AND settled_at IS NOT NULL)

-- name: mend_reply
-- Take the settlement from an owed reply; give up a reply in no state of the machine.
UPDATE outbox SET settled_at = CASE WHEN state IN ('owed', 'sending') THEN NULL ELSE coalesce(settled_at, created_at) END,
    state = CASE WHEN state IN ('owed', 'sending', 'sent') THEN state ELSE 'dead' END
WHERE reply_id = ?
