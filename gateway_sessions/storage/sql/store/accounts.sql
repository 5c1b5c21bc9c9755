-- name: next_event
-- The first platform event from this one on.
SELECT min(event) FROM inbox WHERE event >= ?

-- name: accounts_of_outbox
-- The accounts on which a reply was ever owed.
SELECT DISTINCT platform, account FROM outbox

-- name: lanes_of_events
-- The lanes on which events between two came in, with the time of the last event of each.
SELECT session_key, max(admitted_at) FROM inbox WHERE event >= ? AND event < ? GROUP BY session_key

-- name: lanes_of_account_owed
-- The lanes that were owed a reply on an account, with the time of the last reply of each.
SELECT session_key, max(created_at) FROM outbox WHERE platform = ? AND account = ? GROUP BY session_key

-- name: lanes_of_platform
-- A page of the lanes of a platform that have a session, in the order of their keys.
SELECT session_key FROM entries WHERE platform = ? AND session_key > ? ORDER BY session_key LIMIT ?

-- name: sessions_of_lane
-- All sessions that a lane ever had, and their owners.
SELECT session_id, owner FROM sessions WHERE session_key = ?

-- name: give_entry (index)
-- Give the entry of a lane another key.
UPDATE entries SET session_key = ? WHERE entry_id = ?

-- name: give_session
-- Give a session of the lane to another key and owner; the owner stays the giver of the title that they gave.
UPDATE sessions SET session_key = ?, title_owner = CASE WHEN title_owner = owner THEN ? ELSE title_owner END, owner = ?
WHERE session_id = ?

-- name: give_transitions
-- Give the transitions of the lane another key.
UPDATE transitions SET session_key = ? WHERE session_key = ?

-- name: give_hook_calls
-- Give the hook calls of the lane another key.
UPDATE hook_calls SET session_key = ? WHERE session_key = ?

-- name: owners_in_queue
-- The owners of messages that came in on a lane.
SELECT DISTINCT owner FROM inbox WHERE session_key = ?

-- name: replies_of_accounts
-- The owners and accounts of the replies of a lane.
SELECT DISTINCT owner, account FROM outbox WHERE session_key = ?

-- name: give_items
-- Give the queued messages of an owner to another key and owner.
UPDATE inbox SET session_key = ?, owner = ? WHERE session_key = ? AND owner = ?

-- name: give_replies
-- Give replies to the lane of their account: behind replies of another account they would wait for these.
UPDATE outbox SET session_key = ?, owner = ? WHERE session_key = ? AND owner = ? AND account = ?

-- name: authors_on_lane
-- The authors of a session's messages from that lane.
SELECT DISTINCT author FROM messages WHERE session_id = ? AND from_lane = ? AND author IS NOT NULL

-- name: give_said
-- Give the messages that were said on the lane another key.
UPDATE messages SET from_lane = ? WHERE session_id = ? AND from_lane = ?

-- name: give_author
-- Give an author of messages on the lane another name.
UPDATE messages SET author = ? WHERE session_id = ? AND from_lane = ? AND author = ?

-- name: summaries_of_people
-- The summaries in a session that stand for messages of several people.
SELECT message_id, people FROM messages WHERE session_id = ? AND people IS NOT NULL

-- name: set_people
-- Set the people of a summary.
UPDATE messages SET people = ? WHERE message_id = ?

-- name: give_lane
-- Give the row of the lane another key.
UPDATE lanes SET session_key = ? WHERE session_key = ?
