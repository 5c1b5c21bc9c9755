-- name: some_with_tokens
-- Some messages that match, and whether each must be looked at to know; not those that were changed since.
SELECT message_id, {must_be_looked_at} FROM {all_that:{fits}} AS found
WHERE NOT EXISTS (SELECT 1 FROM index_changes AS changed WHERE changed.message_id = found.message_id) LIMIT ?

-- name: newest_with_tokens
-- The same before a message, the newest first.
SELECT message_id, {must_be_looked_at} FROM messages
WHERE {fits} AND NOT EXISTS (SELECT 1 FROM index_changes AS changed WHERE changed.message_id = messages.message_id)
    AND message_id < ? ORDER BY message_id DESC LIMIT ?

-- name: oldest_with_tokens
-- The same after a message, the oldest first.
SELECT message_id, {must_be_looked_at} FROM messages
WHERE {fits} AND NOT EXISTS (SELECT 1 FROM index_changes AS changed WHERE changed.message_id = messages.message_id)
    AND message_id > ? ORDER BY message_id LIMIT ?

-- name: without_tokens
-- Messages that the index does not know, the newest first.
SELECT {candidate}
WHERE m.tokens IS NULL AND m.message_id < ? ORDER BY m.message_id DESC LIMIT ?

-- name: messages_to_tell_of
-- What the index has to be told of messages that it does not know, the newest first. A very long text is cut.
SELECT message_id, session_id, role, sent_at, substr(content, 1, ?), tool_name, tool_calls, author, from_lane FROM messages
WHERE tokens IS NULL ORDER BY message_id DESC LIMIT ?

-- name: messages_to_tell_of_again
-- The same of messages that were changed since.
SELECT message_id, session_id, role, sent_at, substr(content, 1, ?), tool_name, tool_calls, author, from_lane FROM messages
WHERE message_id IN ({each_number_of})

-- name: put_tokens
-- Let the index know a message.
UPDATE messages SET tokens = {what_it_says} WHERE message_id = ?

-- name: forget_notes
-- These changes have been taken in.
{forget_noted:{each_number_of}}

-- name: forget_tokens
-- Let the index not know some messages behind a message any more.
UPDATE messages SET tokens = NULL
WHERE message_id > ? AND message_id <= ? AND tokens IS NOT NULL

-- name: end_of_page
-- The last one of so many messages behind a message.
SELECT max(message_id) FROM (SELECT message_id FROM messages WHERE message_id > ? ORDER BY message_id LIMIT ?) AS page

-- name: index_standing
-- How far the index can be relied on.
SELECT name, value FROM meta WHERE name IN ('tokens_told_again', 'tokens_being_forgotten', 'tokens_stemmed_by')

-- name: index_progress
-- The highest id of a message, and whether the index has not been told of all.
SELECT (SELECT max(message_id) FROM messages),
    {flag:EXISTS (SELECT 1 FROM messages WHERE tokens IS NULL) OR EXISTS (SELECT 1 FROM index_changes)}
