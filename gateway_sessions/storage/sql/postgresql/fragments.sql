-- fragment: a_text
-- A parameter whose kind cannot be told from its place.
?::text

-- fragment: a_number
-- The same for a number.
?::bigint

-- fragment: each_of
-- All texts of a list, which comes as JSON.
SELECT jsonb_array_elements_text(?::text::jsonb) AS value

-- fragment: each_number_of
-- The same for numbers.
SELECT jsonb_array_elements_text(?::text::jsonb)::bigint

-- fragment: flag
-- Whether something holds, as 1 or 0.
(@)::int

-- fragment: whole
-- A number that is kept as text.
@::bigint

-- fragment: rounded
-- The nearest whole number, away from zero if two are near.
floor(@ + 0.5)::bigint

-- fragment: sum
-- A sum of whole numbers is a whole number.
sum(@)::bigint

-- fragment: divided_by
-- How often one whole number goes into another.
/

-- fragment: greater
-- The greater one of two.
greatest

-- fragment: length
-- How many characters a text has.
length

-- fragment: octets
-- How many bytes it has.
octet_length(@)

-- fragment: filled
-- Whether there is any text.
@ <> ''

-- fragment: is
-- Equal, or both without a value.
IS NOT DISTINCT FROM

-- fragment: holds
-- Whether it has a text in it, letter by letter.
strpos(@, ?) > 0

-- fragment: says
-- Whether it holds a text, whatever the case of its letters.
@ ILIKE ? ESCAPE '~'

-- fragment: joined
-- Texts as one.
@

-- fragment: with
-- What stands between them.
||

-- fragment: json_array
-- Values as one.
json_build_array

-- fragment: json
-- JSON within JSON, not a text.
(@)

-- fragment: json_text
-- JSON as a text.
@::text

-- fragment: as_text
-- A name as a text.
@

-- fragment: length_of_list
-- How many members a list in JSON has.
json_array_length(@::json)

-- fragment: then_join
-- The planner knows which table is best read first.
JOIN

-- fragment: by_parent
-- Sessions that came from another one; the index finds them.

-- fragment: by_time
-- It also knows the best way.

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
-- Turns that wait in their order. All are alike in the columns before it; the planner needs them to see that the index
-- has that order.
token @, merged_into @, place @

-- fragment: forget_items
-- Forget some messages in queues.
DELETE FROM inbox WHERE item_id IN (@)

-- fragment: forget_noted
-- Forget some changes.
DELETE FROM index_changes WHERE change_id IN (@)

-- fragment: forget_replies
-- Forget some replies.
DELETE FROM outbox WHERE reply_id IN (@)

-- fragment: forget_moved_session
-- Forget that a session was resumed elsewhere, on all lanes that it was once on.
UPDATE lanes SET moved_session_id = NULL
WHERE session_key IN (SELECT session_key FROM transitions WHERE session_id = ?) AND moved_session_id = ?

-- fragment: server_now
-- What the clock of the database says, in microseconds.
(extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- fragment: and_tokens
-- What a message is found by.
, tokens

-- fragment: and_what_it_says
-- The same as a value.
, {what_it_says}

-- fragment: what_it_says
-- Its tokens, and labels of its session, as the program would spell them.
?::text::tsvector || (
        SELECT array_to_tsvector(array_remove(ARRAY[
            'ow' || left(encode(sha256(convert_to(owner, 'UTF8')), 'hex'), 16),
            'la' || left(encode(sha256(convert_to(session_key, 'UTF8')), 'hex'), 16),
            'se' || left(encode(sha256(convert_to(session_id, 'UTF8')), 'hex'), 16),
            'so' || left(encode(sha256(convert_to(source, 'UTF8')), 'hex'), 16)], NULL))
        FROM sessions WHERE session_id = ?)

-- fragment: fits
-- Whether a message has what is asked for.
tokens @@ ?::text::tsquery

-- fragment: must_be_looked_at
-- Whether that is not certain.
(tokens @@ 'x1 | x2')::int

-- fragment: all_that
-- Messages of some kind, planned as if all were wanted: or a few would be looked for row by row.
(WITH matching AS MATERIALIZED (SELECT message_id, tokens FROM messages WHERE @) SELECT message_id, tokens FROM matching)
