-- name: put_tombstone
-- Somebody was erased; what they sent before must not come back.
INSERT INTO tombstones (subject, erased_at) VALUES ($1, $2)
ON CONFLICT (subject) DO UPDATE SET erased_at = excluded.erased_at WHERE excluded.erased_at > tombstones.erased_at

-- name: get_tombstone
-- When somebody was erased.
SELECT erased_at FROM tombstones WHERE subject = $1

-- name: any_tombstone_since
-- Whether anybody was erased at that instant or later.
SELECT 1 FROM tombstones WHERE erased_at >= $1 LIMIT 1

-- name: lanes_of_owner
-- Their lanes, and whether a turn runs there.
SELECT e.session_key, e.session_id, l.lease_epoch FROM entries AS e LEFT JOIN lanes AS l ON l.session_key = e.session_key
WHERE e.owner = $1 ORDER BY e.session_key

-- name: lanes_that_were_of_owner
-- Lanes that they once had a session on and that are nobody else's now.
SELECT DISTINCT s.session_key FROM sessions AS s LEFT JOIN entries AS e ON e.session_key = s.session_key
WHERE s.owner = $1 AND s.session_key IS NOT NULL AND (e.owner IS NULL OR e.owner = $2) ORDER BY s.session_key

-- name: sessions_of_owner_until
-- Some of their sessions that began before.
SELECT session_id FROM sessions WHERE owner = $1 AND started_at <= $2 ORDER BY session_id LIMIT $3

-- name: delete_transitions_of_lane_until
-- What happened on a lane before.
DELETE FROM transitions WHERE session_key = $1 AND at <= $2

-- name: delete_hook_calls_of_lane_until
-- What hooks would have been told of it.
DELETE FROM hook_calls WHERE session_key = $1 AND created_at <= $2

-- name: delete_lane_without_session
-- Nothing is left to know of the lane, unless somebody uses it again.
DELETE FROM lanes WHERE session_key = $1 AND lease_epoch IS NULL AND waiting = 0
    AND NOT EXISTS (SELECT 1 FROM entries WHERE entries.session_key = lanes.session_key)

-- name: entries_that_name
-- Lanes of others whose entries hold a text.
SELECT session_key FROM entries WHERE owner <> $1 AND platform = $2 AND record ILIKE $3 ESCAPE '~' ORDER BY session_key

-- name: archives_that_name
-- Ended sessions of others whose entries hold a text.
SELECT session_id, entry FROM sessions WHERE owner <> $1 AND source = $2 AND entry ILIKE $3 ESCAPE '~' ORDER BY session_id

-- name: set_archived_entry
-- The entry of an ended session, as it should be from now on.
UPDATE sessions SET entry = $1 WHERE session_id = $2

-- name: forget_user_of_sessions
-- It is not known any more who began these sessions of others.
UPDATE sessions SET user_id = NULL WHERE owner <> $1 AND source = $2 AND user_id = $3

-- name: transitions_of_owner_lane
-- All that happened on a lane.
SELECT at, session_id, event, from_state, to_state, reason, actor FROM transitions
WHERE session_key = $1 ORDER BY change_id

-- name: unfinished_erasures
-- What was noted of erasures that have not come to their end.
SELECT value FROM meta WHERE name > $1 AND name < $2 ORDER BY name

-- name: open_items_of_person
-- What waits or runs on their lanes, or was sent by them to a room.
SELECT item_id, session_key, token FROM inbox
WHERE outcome IS NULL AND (owner = $1 OR session_key IN (SELECT jsonb_array_elements_text($2::jsonb))
    OR (sender = $3 AND substr(owner, 1, length($4::text)) = $5))

-- name: delete_item
-- Nothing is left of a message.
DELETE FROM inbox WHERE item_id = $1

-- name: delete_replies_of_person
-- What they are owed, or were sent, as far as it was said before: on their lanes, or in answer to them in a room.
DELETE FROM outbox WHERE reply_id IN (SELECT reply_id FROM outbox
    WHERE created_at <= $1 AND (owner = $2 OR session_key IN (SELECT jsonb_array_elements_text($3::jsonb))
        OR (session_key, seq) IN (SELECT session_key, seq FROM inbox
            WHERE sender = $4 AND substr(owner, 1, length($5::text)) = $6))
    LIMIT $7)

-- name: delete_items_of_person
-- What they sent before, whatever became of it.
DELETE FROM inbox WHERE item_id IN (SELECT item_id FROM inbox
    WHERE admitted_at <= $1 AND (owner = $2 OR session_key IN (SELECT jsonb_array_elements_text($3::jsonb))
        OR (sender = $4 AND substr(owner, 1, length($5::text)) = $6))
    LIMIT $7)

-- name: kept_items_of_person
-- What of them waits, runs or was given up, lane by lane.
SELECT session_key, seq, token, outcome, admitted_at, payload FROM inbox
WHERE payload IS NOT NULL AND (owner = $1 OR session_key IN (SELECT jsonb_array_elements_text($2::jsonb))
    OR (sender = $3 AND substr(owner, 1, length($4::text)) = $5))
ORDER BY session_key, seq

-- name: kept_replies_of_person
-- What they are owed, or could not be sent, lane by lane.
SELECT session_key, state, created_at, content FROM outbox
WHERE content IS NOT NULL AND (owner = $1 OR session_key IN (SELECT jsonb_array_elements_text($2::jsonb))
    OR (session_key, seq) IN (SELECT session_key, seq FROM inbox
        WHERE sender = $3 AND substr(owner, 1, length($4::text)) = $5))
ORDER BY session_key, reply_id
