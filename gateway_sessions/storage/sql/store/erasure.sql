-- name: put_tombstone
-- Somebody was erased; what they sent before must not come back.
INSERT INTO tombstones (subject, erased_at) VALUES (?, ?)
{update_instead:subject} erased_at = {greater}(tombstones.erased_at, {given:erased_at})

-- name: get_tombstone
-- When somebody was erased.
SELECT erased_at FROM tombstones WHERE subject = ?

-- name: any_tombstone_since
-- Whether anybody was erased at that instant or later.
SELECT 1 FROM tombstones WHERE erased_at >= ? LIMIT 1

-- name: lanes_of_owner
-- Their lanes, and whether a turn runs there.
SELECT e.session_key, e.session_id, l.lease_epoch FROM entries AS e LEFT JOIN lanes AS l ON l.session_key = e.session_key
WHERE e.owner = ? ORDER BY e.session_key

-- name: lanes_that_were_of_owner
-- Lanes that they once had a session on and that are nobody else's now.
SELECT DISTINCT s.session_key FROM sessions AS s LEFT JOIN entries AS e ON e.session_key = s.session_key
WHERE s.owner = ? AND s.session_key IS NOT NULL AND (e.owner IS NULL OR e.owner = ?) ORDER BY s.session_key

-- name: sessions_of_owner_until
-- Some of their sessions that began before.
SELECT session_id FROM sessions WHERE owner = ? AND started_at <= ? ORDER BY session_id LIMIT ?

-- name: delete_transitions_of_lane_until
-- What happened on a lane before.
DELETE FROM transitions WHERE session_key = ? AND at <= ?

-- name: delete_hook_calls_of_lane_until
-- What hooks would have been told of it.
DELETE FROM hook_calls WHERE session_key = ? AND created_at <= ?

-- name: delete_lane_without_session
-- Nothing is left to know of the lane, unless somebody uses it again.
DELETE FROM lanes WHERE session_key = ? AND lease_epoch IS NULL AND waiting = 0
    AND NOT EXISTS (SELECT 1 FROM entries WHERE entries.session_key = lanes.session_key)

-- name: entries_that_name
-- Lanes of others whose entries hold a text.
SELECT session_key FROM entries WHERE owner <> ? AND platform = ? AND {says:record} ORDER BY session_key

-- name: archives_that_name
-- Ended sessions of others whose entries hold a text.
SELECT session_id, entry FROM sessions WHERE owner <> ? AND source = ? AND {says:entry} ORDER BY session_id

-- name: set_archived_entry
-- The entry of an ended session, as it should be from now on.
UPDATE sessions SET entry = ? WHERE session_id = ?

-- name: users_of_sessions_of_others
-- Who began sessions of others on a platform, by id.
SELECT DISTINCT user_id FROM sessions WHERE owner <> ? AND source = ? AND user_id IS NOT NULL ORDER BY user_id

-- name: forget_user_of_sessions
-- It is not known any more who began these sessions of others.
UPDATE sessions SET user_id = NULL WHERE owner <> ? AND source = ? AND user_id = ?

-- name: transitions_of_owner_lane
-- All that happened on a lane.
SELECT at, session_id, event, from_state, to_state, reason, actor FROM transitions
WHERE session_key = ? ORDER BY change_id

-- name: unfinished_erasures
-- What was noted of erasures that have not come to their end.
SELECT value FROM meta WHERE name > ? AND name < ? ORDER BY name

-- name: open_items_of_person
-- What waits or runs on their lanes, or was sent by them to a room.
SELECT item_id, session_key, event, transcript_id, token FROM inbox
WHERE outcome IS NULL AND {on_lanes_of_person}

-- name: delete_item
-- Nothing is left of a message.
DELETE FROM inbox WHERE item_id = ?

-- name: delete_replies_of_person
-- What they are owed, or were sent, as far as it was said before: on their lanes, or in answer to them in a room.
{forget_replies:SELECT reply_id FROM outbox
    WHERE created_at <= ? AND (owner = ? OR session_key IN ({each_of})
        OR (session_key, seq) IN (SELECT session_key, seq FROM inbox
            WHERE {sent_to_room}))
    LIMIT ?}

-- name: items_of_person_until
-- Some of what they sent before, whatever became of it.
SELECT item_id, session_key, event, transcript_id FROM inbox
WHERE admitted_at <= ? AND {on_lanes_of_person}
ORDER BY item_id LIMIT ?

-- name: row_without_author
-- A message of which the transcript does not say who said it.
SELECT message_id, session_id FROM messages WHERE message_id = ? AND role = 'user' AND author IS NULL

-- name: rows_without_author
-- All such on a lane that a platform calls that.
SELECT m.message_id, m.session_id FROM messages AS m JOIN sessions AS s ON s.session_id = m.session_id
WHERE s.session_key = ? AND m.platform_message_id = ? AND m.role = 'user' AND m.author IS NULL

-- fragment: words_of
-- Messages of somebody, with summaries of them, as far as they are from before.
(author = ? OR (people IS NOT NULL AND {holds:people})) AND (message_id <= ? OR sent_at <= ?)

-- name: sessions_with_words_of
-- Sessions of others in which somebody said something, in their order.
SELECT session_id, source FROM sessions
WHERE session_id IN ({several:SELECT session_id FROM messages WHERE {words_of}}) AND owner <> ? AND session_id > ?
ORDER BY session_id LIMIT ?

-- name: count_words_in_sessions_of_others
-- How many messages these are.
SELECT count(*) FROM messages WHERE {words_of} AND session_id IN (SELECT session_id FROM sessions WHERE owner <> ?)

-- name: words_in_session
-- What somebody said in a session.
SELECT {message} FROM messages WHERE session_id = ? AND {words_of} ORDER BY seq

-- name: answers_behind
-- What agents said in a session behind a place, as far as it is from before.
SELECT message_id FROM messages
WHERE session_id = ? AND seq > ? AND role <> 'user' AND author IS NULL AND (message_id <= ? OR sent_at <= ?)

-- name: forget_replies_of_session
-- Replies of a session that are owed, or could not be sent: they may repeat it as well.
DELETE FROM outbox WHERE session_id = ? AND content IS NOT NULL AND created_at <= ?

-- name: forget_problems_of_lane
-- What went wrong with messages of a lane: an error may repeat it as well.
UPDATE inbox SET problem = ? WHERE session_key = ? AND problem IS NOT NULL AND admitted_at <= ?

-- name: lanes_left_by
-- Lanes that were somebody's alone, for an agent spoke to them there, and that are nobody else's now.
SELECT DISTINCT m.from_lane FROM messages AS m LEFT JOIN entries AS e ON e.session_key = m.from_lane
WHERE m.author = ? AND m.role <> 'user' AND m.from_lane IS NOT NULL AND (e.owner IS NULL OR e.owner = ?)

-- name: forget_title_of_words
-- What a session is called came from what was said in it, or from somebody when it was theirs.
UPDATE sessions SET title = NULL, title_by = NULL, title_owner = NULL
WHERE title IS NOT NULL AND (title_by <> 'person' OR title_owner = ?) AND session_id = ?

-- name: forget_titles_of_owner
-- The same of all sessions of others that were called so by somebody.
UPDATE sessions SET title = NULL, title_by = NULL, title_owner = NULL WHERE title_owner = ? AND owner <> ?

-- name: titles_given_by
-- What sessions of others are called because somebody called them so, or held them then; behind a session, some.
SELECT session_id, source, title FROM sessions
WHERE title_owner = ? AND owner <> ? AND title IS NOT NULL AND session_id > ? ORDER BY session_id LIMIT ?

-- name: extra_of_session
-- What is known of a session besides.
SELECT extra FROM sessions WHERE session_id = ?

-- name: set_extra_of_session
-- What is known of it from now on.
UPDATE sessions SET extra = ? WHERE session_id = ?

-- name: kept_items_of_person
-- What of them waits, runs or was given up, lane by lane.
SELECT session_key, seq, token, outcome, admitted_at, payload FROM inbox
WHERE payload IS NOT NULL AND {on_lanes_of_person}
ORDER BY session_key, seq

-- name: kept_replies_of_person
-- What they are owed, or could not be sent, lane by lane.
SELECT session_key, state, created_at, content FROM outbox
WHERE content IS NOT NULL AND (owner = ? OR session_key IN ({each_of})
    OR (session_key, seq) IN (SELECT session_key, seq FROM inbox
        WHERE {sent_to_room}))
ORDER BY session_key, reply_id
