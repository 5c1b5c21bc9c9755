-- fragment: a_text
-- A parameter whose kind cannot be told from its place.
?

-- fragment: a_number
-- The same for a number.
?

-- fragment: each_of
-- All texts of a list, which comes as JSON.
SELECT value FROM JSON_TABLE(?, '$[*]' COLUMNS (
        value VARCHAR(3072) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS listed

-- fragment: each_number_of
-- The same for numbers.
SELECT value FROM JSON_TABLE(?, '$[*]' COLUMNS (value BIGINT PATH '$')) AS listed

-- fragment: flag
-- Whether something holds, as 1 or 0; JSON would say true or false.
CASE WHEN @ THEN 1 ELSE 0 END

-- fragment: whole
-- A number that is kept as text.
CAST(@ AS SIGNED)

-- fragment: rounded
-- The nearest whole number, away from zero if two are near.
CAST(floor(@ + 0.5) AS SIGNED)

-- fragment: sum
-- A sum of whole numbers is a whole number.
CAST(sum(@) AS SIGNED)

-- fragment: divided_by
-- How often one whole number goes into another.
DIV

-- fragment: greater
-- The greater one of two.
greatest

-- fragment: length
-- How long a text is that is compared byte by byte.
octet_length

-- fragment: octets
-- How many bytes it has.
octet_length(@)

-- fragment: filled
-- Whether there is any text; a comparison would not count spaces.
octet_length(@) > 0

-- fragment: is
-- Equal, or both without a value.
<=>

-- fragment: holds
-- Whether it has a text in it, letter by letter.
instr(@, ?) > 0

-- fragment: says
-- Whether it holds a text, whatever the case of its letters.
lower(@) LIKE lower(?) ESCAPE '~'

-- fragment: joined
-- Texts as one, whatever the server takes two bars for.
concat(@)

-- fragment: with
-- What stands between them.
,

-- fragment: json_array
-- Values as one.
json_array

-- fragment: json
-- JSON within JSON, not a text.
json_extract(@, '$')

-- fragment: json_text
-- JSON as a text.
CAST(@ AS CHAR)

-- fragment: as_text
-- A name, which is kept as bytes, as a text.
CONVERT(@ USING utf8mb4)

-- fragment: length_of_list
-- How many members a list in JSON has.
json_length(@)

-- fragment: then_join
-- The first table first: statistics are refreshed seldom.
STRAIGHT_JOIN

-- fragment: by_parent
-- Sessions that came from another one. Most came from none, and MySQL takes those for alike: it would read all.
FORCE INDEX (sessions_by_parent)

-- fragment: by_time
-- Messages in the order of time; the planner would rather sort.
FORCE INDEX (messages_by_time)

-- fragment: update_instead
-- What changes if there is a row of that key already. Another row that is in the way must not be changed: its key is
-- set to nothing, which the server refuses.
ON DUPLICATE KEY UPDATE @ = CASE WHEN @ = VALUES(@) THEN @ END,

-- fragment: given
-- The value that was to be inserted.
VALUES(@)

-- fragment: or_nothing
-- What is there already stays as it is; it counts as changed.
ON DUPLICATE KEY UPDATE @ = @

-- fragment: lead_like_head
-- Give a message all that the one has that led its turn, one message less. Its place is the next one: the other may wait
-- in its own place again, and comes first then.
UPDATE inbox AS item JOIN inbox AS head ON head.item_id = ?
SET item.merged_into = NULL, item.place = head.place + 1, item.messages = head.messages - 1,
    item.characters = head.characters, item.media = head.media, item.solo = head.solo, item.last_at = head.last_at,
    item.ready_at = head.ready_at, item.tries = head.tries, item.growing = head.growing
WHERE item.item_id = ? AND item.merged_into IS NOT NULL AND (item.outcome IS NULL OR item.outcome = 'dead')

-- fragment: several
-- Rows that come from several places: looked up once, not for each row that might be among them.
SELECT * FROM (@) AS several

-- fragment: whose
-- Whether a session is of some owners or of one lane: an index serves each, none serves both.
@.session_id IN (SELECT * FROM (
        SELECT session_id FROM sessions WHERE owner IN ({each_of})
        UNION SELECT session_id FROM sessions WHERE session_key = ?) AS several)

-- fragment: by_activity
-- Sessions in the order of their activity; the planner would rather sort.
FORCE INDEX (totals_recent)

-- fragment: by_place
-- Turns that wait in their order.
place @

-- fragment: forget_items
-- Forget some messages in queues. Looked up first: on the way to them, others would be locked as well.
DELETE inbox FROM inbox JOIN (@) AS chosen USING (item_id)

-- fragment: forget_noted
-- Forget some changes. MariaDB would look for each of all changes among them.
DELETE index_changes FROM index_changes JOIN (@) AS chosen ON chosen.value = change_id

-- fragment: forget_replies
-- Forget some replies.
DELETE outbox FROM outbox JOIN (@) AS chosen USING (reply_id)

-- fragment: forget_moved_session
-- Forget that a session was resumed elsewhere, on all lanes that it was once on.
UPDATE lanes JOIN (SELECT DISTINCT session_key FROM transitions WHERE session_id = ?) AS chosen USING (session_key)
SET moved_session_id = NULL WHERE moved_session_id = ?

-- fragment: server_now
-- What the clock of the database says, in microseconds. Never by way of local time: when clocks are set back, an hour
-- of it comes twice, and all nodes would seem to have been silent for so long.
TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))

-- fragment: and_tokens
-- What a message is found by.
, tokens

-- fragment: and_what_it_says
-- The same as a value.
, {what_it_says}

-- fragment: what_it_says
-- Its tokens before labels of its session, as the program would spell them. The session is that of the row: what only
-- depends on values, MariaDB finds out once for all rows that it takes at once.
concat(?, ' ', (SELECT concat_ws(' ',
        concat('zzow', left(sha2(of_row.owner, 256), 16)),
        concat('zzla', left(sha2(of_row.session_key, 256), 16)),
        concat('zzse', left(sha2(of_row.session_id, 256), 16)),
        concat('zzso', left(sha2(of_row.source, 256), 16)))
        FROM sessions AS of_row WHERE of_row.session_id = messages.session_id))

-- fragment: fits
-- Whether a message has what is asked for.
MATCH (tokens) AGAINST (? IN BOOLEAN MODE)

-- fragment: must_be_looked_at
-- The question tells whether the answer is certain.
0

-- fragment: all_that
-- Messages of some kind.
(SELECT message_id, tokens FROM messages WHERE @)
