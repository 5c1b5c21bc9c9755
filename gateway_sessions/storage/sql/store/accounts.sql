-- name: next_event
-- The first event of a platform that is not before this one.
SELECT min(event) FROM inbox WHERE event >= ?

-- name: accounts_of_outbox
-- The accounts that anything was ever owed on.
SELECT DISTINCT platform, account FROM outbox

-- name: lanes_of_events
-- The lanes on which events between two came in, and when the last of them did.
SELECT session_key, max(admitted_at) FROM inbox WHERE event >= ? AND event < ? GROUP BY session_key

-- name: lanes_of_account_owed
-- The lanes that were owed something on an account, and when they were last.
SELECT session_key, max(created_at) FROM outbox WHERE platform = ? AND account = ? GROUP BY session_key

-- name: lanes_of_platform
-- A page of the lanes of a platform that have a session, in the order of their keys.
SELECT session_key FROM entries WHERE platform = ? AND session_key > ? ORDER BY session_key LIMIT ?

-- name: sessions_of_lane
-- All sessions that a lane ever had, and whose they are.
SELECT session_id, owner FROM sessions WHERE session_key = ?

-- name: give_entry (index)
-- The entry belongs to another lane.
UPDATE entries SET session_key = ? WHERE entry_id = ?

-- name: give_session
-- So does a session; if it was called so by its owner, that is who called it so.
UPDATE sessions SET session_key = ?, title_owner = CASE WHEN title_owner = owner THEN ? ELSE title_owner END, owner = ?
WHERE session_id = ?

-- name: give_transitions
-- So does all that happened on the lane.
UPDATE transitions SET session_key = ? WHERE session_key = ?

-- name: give_hook_calls
-- So do calls of hooks.
UPDATE hook_calls SET session_key = ? WHERE session_key = ?

-- name: owners_in_queue
-- Whose messages came in on a lane.
SELECT DISTINCT owner FROM inbox WHERE session_key = ?

-- name: replies_of_accounts
-- Whose replies go out from a lane, and on which accounts.
SELECT DISTINCT owner, account FROM outbox WHERE session_key = ?

-- name: give_items
-- So do messages that came in.
UPDATE inbox SET session_key = ?, owner = ? WHERE session_key = ? AND owner = ?

-- name: give_replies
-- Replies go out from the lane of their account: behind those of another one they would wait for each other.
UPDATE outbox SET session_key = ?, owner = ? WHERE session_key = ? AND owner = ? AND account = ?

-- name: authors_on_lane
-- Who said something in a session while it was on a lane.
SELECT DISTINCT author FROM messages WHERE session_id = ? AND from_lane = ? AND author IS NOT NULL

-- name: give_said
-- What was said on the lane was said on the other one.
UPDATE messages SET from_lane = ? WHERE session_id = ? AND from_lane = ?

-- name: give_author
-- Who said it there goes by another name.
UPDATE messages SET author = ? WHERE session_id = ? AND from_lane = ? AND author = ?

-- name: summaries_of_people
-- What stands in a session for what several people said.
SELECT message_id, people FROM messages WHERE session_id = ? AND people IS NOT NULL

-- name: set_people
-- Who those people are.
UPDATE messages SET people = ? WHERE message_id = ?

-- name: give_lane
-- The lane itself has another key.
UPDATE lanes SET session_key = ? WHERE session_key = ?
