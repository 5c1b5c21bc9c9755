-- name: put_tombstone
-- Set the tombstone of an erased person; an earlier one never replaces a later one.
INSERT INTO tombstones (subject, erased_at) VALUES (?, ?)
{update_instead:subject} erased_at = {greater}(tombstones.erased_at, {given:erased_at})

-- name: get_tombstone
-- The time of a person's erasure.
SELECT erased_at FROM tombstones WHERE subject = ?

-- name: any_tombstone_since
-- Whether any person was erased at that instant or later.
SELECT 1 FROM tombstones WHERE erased_at >= ? LIMIT 1

-- name: lanes_of_owner
-- The lanes of a person, and the leases of running turns.
SELECT e.session_key, e.session_id, l.lease_epoch FROM entries AS e LEFT JOIN lanes AS l ON l.session_key = e.session_key
WHERE e.owner = ? ORDER BY e.session_key

-- name: lanes_that_were_of_owner
-- Lanes on which a person once had a session and that have no other owner now.
SELECT DISTINCT s.session_key FROM sessions AS s LEFT JOIN entries AS e ON e.session_key = s.session_key
WHERE s.owner = ? AND s.session_key IS NOT NULL AND (e.owner IS NULL OR e.owner = ?) ORDER BY s.session_key

-- name: sessions_of_owner_until
-- Some sessions of a person that began before the erasure.
SELECT session_id FROM sessions WHERE owner = ? AND started_at <= ? ORDER BY session_id LIMIT ?

-- name: delete_transitions_of_lane_until
-- Remove the transitions of a lane from before the erasure.
DELETE FROM transitions WHERE session_key = ? AND at <= ?

-- name: delete_hook_calls_of_lane_until
-- Remove the hook calls of a lane from before the erasure.
DELETE FROM hook_calls WHERE session_key = ? AND created_at <= ?

-- name: delete_lane_without_session
-- Remove the row of a lane, unless the lane is used again.
DELETE FROM lanes WHERE session_key = ? AND lease_epoch IS NULL AND waiting = 0
    AND NOT EXISTS (SELECT 1 FROM entries WHERE entries.session_key = lanes.session_key)

-- name: entries_that_name
-- Lanes of other owners whose entries hold a text.
SELECT session_key FROM entries WHERE owner <> ? AND platform = ? AND {says:record} ORDER BY session_key

-- name: archives_that_name
-- Ended sessions of other owners whose entries hold a text.
SELECT session_id, entry FROM sessions WHERE owner <> ? AND source = ? AND {says:entry} ORDER BY session_id

-- name: set_archived_entry
-- Replace the archived entry of an ended session.
UPDATE sessions SET entry = ? WHERE session_id = ?

-- name: users_of_sessions_of_others
-- The ids of people who began sessions of other owners on a platform.
SELECT DISTINCT user_id FROM sessions WHERE owner <> ? AND source = ? AND user_id IS NOT NULL ORDER BY user_id

-- name: forget_user_of_sessions
-- Remove the id of the person who began sessions of other owners.
UPDATE sessions SET user_id = NULL WHERE owner <> ? AND source = ? AND user_id = ?

-- name: transitions_of_owner_lane
-- All transitions of a lane.
SELECT at, session_id, event, from_state, to_state, reason, actor FROM transitions
WHERE session_key = ? ORDER BY change_id

-- name: unfinished_erasures
-- The plans of unfinished erasures.
SELECT value FROM meta WHERE name > ? AND name < ? ORDER BY name

-- name: open_items_of_person
-- Messages that wait or run on a person's lanes, or that the person sent to a room.
SELECT item_id, session_key, event, transcript_id, token FROM inbox
WHERE outcome IS NULL AND {on_lanes_of_person}

-- name: delete_item
-- Remove a message from the queue.
DELETE FROM inbox WHERE item_id = ?

-- name: delete_replies_of_person
-- Remove some replies from before the erasure: on the person's lanes, or in answer to them in a room.
{forget_replies:SELECT reply_id FROM outbox
    WHERE created_at <= ? AND (owner = ? OR session_key IN ({each_of})
        OR (session_key, seq) IN (SELECT session_key, seq FROM inbox
            WHERE {sent_to_room}))
    LIMIT ?}

-- name: items_of_person_until
-- Some messages of the person from before the erasure, settled or not.
SELECT item_id, session_key, event, transcript_id FROM inbox
WHERE admitted_at <= ? AND {on_lanes_of_person}
ORDER BY item_id LIMIT ?

-- name: row_without_author
-- A message whose row names no author.
SELECT message_id, session_id FROM messages WHERE message_id = ? AND role = 'user' AND author IS NULL

-- name: rows_without_author
-- Messages of a lane with that id of their platform whose rows name no author.
SELECT m.message_id, m.session_id FROM messages AS m JOIN sessions AS s ON s.session_id = m.session_id
WHERE s.session_key = ? AND m.platform_message_id = ? AND m.role = 'user' AND m.author IS NULL

-- fragment: words_of
-- Messages of a person, and summaries of them, from before the erasure.
(author = ? OR (people IS NOT NULL AND {holds:people})) AND (message_id <= ? OR sent_at <= ?)

-- name: sessions_with_words_of
-- Sessions of other owners with messages of a person, in the order of their ids.
SELECT session_id, source FROM sessions
WHERE session_id IN ({several:SELECT session_id FROM messages WHERE {words_of}}) AND owner <> ? AND session_id > ?
ORDER BY session_id LIMIT ?

-- name: count_words_in_sessions_of_others
-- The number of a person's messages in sessions of other owners.
SELECT count(*) FROM messages WHERE {words_of} AND session_id IN (SELECT session_id FROM sessions WHERE owner <> ?)

-- name: words_in_session
-- The messages of a person in a session.
SELECT {message} FROM messages WHERE session_id = ? AND {words_of} ORDER BY seq

-- name: answers_behind
-- Agents' messages in a session behind a place, from before the erasure.
SELECT message_id FROM messages
WHERE session_id = ? AND seq > ? AND role <> 'user' AND author IS NULL AND (message_id <= ? OR sent_at <= ?)

-- name: forget_replies_of_session
-- Remove replies of a session that are owed, or were given up: they may repeat erased messages.
DELETE FROM outbox WHERE session_id = ? AND content IS NOT NULL AND created_at <= ?

-- name: forget_problems_of_lane
-- Replace the problems of a lane's messages: an error may repeat erased messages.
UPDATE inbox SET problem = ? WHERE session_key = ? AND problem IS NOT NULL AND admitted_at <= ?

-- name: lanes_left_by
-- Lanes on which an agent spoke to a person alone and that have no other owner now.
SELECT DISTINCT m.from_lane FROM messages AS m LEFT JOIN entries AS e ON e.session_key = m.from_lane
WHERE m.author = ? AND m.role <> 'user' AND m.from_lane IS NOT NULL AND (e.owner IS NULL OR e.owner = ?)

-- name: forget_title_of_words
-- Remove the title of a session if it was made from messages, or given by the person.
UPDATE sessions SET title = NULL, title_by = NULL, title_owner = NULL
WHERE title IS NOT NULL AND (title_by <> 'person' OR title_owner = ?) AND session_id = ?

-- name: forget_titles_of_owner
-- Remove the titles that a person gave to sessions of other owners.
UPDATE sessions SET title = NULL, title_by = NULL, title_owner = NULL WHERE title_owner = ? AND owner <> ?

-- name: titles_given_by
-- Titles that a person gave to sessions of other owners, behind an id.
SELECT session_id, source, title FROM sessions
WHERE title_owner = ? AND owner <> ? AND title IS NOT NULL AND session_id > ? ORDER BY session_id LIMIT ?

-- name: extra_of_session
-- The extra fields of a session.
SELECT extra FROM sessions WHERE session_id = ?

-- name: set_extra_of_session
-- Set the extra fields of a session.
UPDATE sessions SET extra = ? WHERE session_id = ?

-- name: kept_items_of_person
-- Messages of a person that wait, run or were given up, lane by lane.
SELECT session_key, seq, token, outcome, admitted_at, payload FROM inbox
WHERE payload IS NOT NULL AND {on_lanes_of_person}
ORDER BY session_key, seq

-- name: kept_replies_of_person
-- Replies to a person that are owed or were given up, lane by lane.
SELECT session_key, state, created_at, content FROM outbox
WHERE content IS NOT NULL AND (owner = ? OR session_key IN ({each_of})
    OR (session_key, seq) IN (SELECT session_key, seq FROM inbox
        WHERE {sent_to_room}))
ORDER BY session_key, reply_id
