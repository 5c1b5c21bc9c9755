-- fragment: a_text
-- A parameter whose kind cannot be told from its place.
?

-- fragment: a_number
-- The same for a number.
?

-- fragment: each_of
-- All texts of a list, which comes as JSON.
SELECT value FROM json_each(?)

-- fragment: each_number_of
-- The same for numbers.
SELECT value FROM json_each(?)

-- fragment: flag
-- Whether something holds, as 1 or 0.
(@)

-- fragment: whole
-- A number that is kept as text.
CAST(@ AS INTEGER)

-- fragment: rounded
-- The nearest whole number.
CAST(round(@) AS INTEGER)

-- fragment: sum
-- A sum of whole numbers is a whole number.
sum(@)

-- fragment: divided_by
-- How often one whole number goes into another.
/

-- fragment: greater
-- The greater one of two.
max

-- fragment: length
-- How many characters a text has.
length

-- fragment: octets
-- How many bytes it has.
length(CAST(@ AS BLOB))

-- fragment: filled
-- Whether there is any text.
@ <> ''

-- fragment: is
-- Equal, or both without a value.
IS

-- fragment: holds
-- Whether it has a text in it, letter by letter.
instr(@, ?) > 0

-- fragment: says
-- Whether it holds a text, whatever the case of its letters.
@ LIKE ? ESCAPE '~'

-- fragment: joined
-- Texts as one.
@

-- fragment: with
-- What stands between them.
||

-- fragment: json_array
-- Values as one.
json_array

-- fragment: json
-- JSON within JSON, not a text.
json(@)

-- fragment: json_text
-- JSON as a text.
@

-- fragment: as_text
-- A name as a text.
@

-- fragment: length_of_list
-- How many members a list in JSON has.
json_array_length(@)

-- fragment: then_join
-- The first table first: it has fewer rows than the planner thinks.
CROSS JOIN

-- fragment: by_parent
-- Sessions that came from another one; the index finds them.

-- fragment: by_time
-- Messages in the order of time; the planner would rather sort.
INDEXED BY messages_by_time

-- fragment: update_instead
-- What changes if there is a row of that key already.
ON CONFLICT (@) DO UPDATE SET

-- fragment: given
-- The value that was to be inserted.
excluded.@

-- fragment: or_nothing
-- What is there already stays as it is.
ON CONFLICT (@) DO NOTHING

-- fragment: lead_like_head
-- Give a message all that the one has that led its turn, one message less. Its place is the next one: the other may wait
-- in its own place again, and comes first then.
UPDATE inbox SET merged_into = NULL,
    (place, messages, characters, media, solo, last_at, ready_at, tries, growing) =
        (SELECT place + 1, messages - 1, characters, media, solo, last_at, ready_at, tries, growing
         FROM inbox WHERE item_id = ?)
WHERE item_id = ? AND merged_into IS NOT NULL AND (outcome IS NULL OR outcome = 'dead')

-- fragment: several
-- Rows that come from several places.
@

-- fragment: whose
-- Whether a session is of some owners or of one lane.
(@.owner IN ({each_of}) OR @.session_key = ?)

-- fragment: by_activity
-- Sessions in the order of their activity, as the planner would read them anyway.

-- fragment: by_place
-- Turns that wait in their order.
place @

-- fragment: forget_items
-- Forget some messages in queues.
DELETE FROM inbox WHERE item_id IN (@)

-- fragment: forget_replies
-- Forget some replies.
DELETE FROM outbox WHERE reply_id IN (@)

-- fragment: forget_moved_session
-- Forget that a session was resumed elsewhere, on all lanes that it was once on.
UPDATE lanes SET moved_session_id = NULL
WHERE session_key IN (SELECT session_key FROM transitions WHERE session_id = ?) AND moved_session_id = ?

-- fragment: server_now
-- What the clock of the database says, in microseconds.
CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)

-- fragment: and_tokens
-- Nothing of the search index is beside the messages.

-- fragment: and_what_it_says
-- So nothing more is written with one.
