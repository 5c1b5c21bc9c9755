-- name: known_event
-- The lane and seq of a platform event that was accepted before.
SELECT session_key, seq FROM inbox WHERE event = ?

-- name: outcome_of_event
-- What became of a platform event that was accepted.
SELECT session_key, outcome, problem FROM inbox WHERE event = ?

-- name: waiting_events
-- The newest events of platforms that were accepted and have not had their turn.
SELECT event, seq, session_key FROM inbox WHERE outcome IS NULL AND event IS NOT NULL ORDER BY item_id DESC LIMIT ?

-- name: add_item
-- Add a message, or a command or change that is noted, to the queue.
INSERT INTO inbox (item_id, session_key, seq, place, event, owner, sender, kind, solo, media, merged_into, messages,
    characters, last_at, admitted_at, ready_at, token, payload, outcome, settled_at, settled_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: oldest_waiting
-- The turn that makes room for another one: the first that nobody asked for explicitly.
SELECT seq, item_id FROM inbox WHERE {turn_that_waits} AND solo = 0 AND kind = 'message'
ORDER BY {by_place:ASC} LIMIT 1

-- name: count_deferred
-- The number of waiting turns that were asked for with /queue.
SELECT count(*) FROM inbox WHERE {turn_that_waits} AND solo = 1 AND kind = 'message'

-- name: extend_item
-- Count another message in the waiting turn that it joins.
UPDATE inbox SET messages = messages + 1, characters = characters + ?, media = {greater}(media, ?), last_at = ?, ready_at = ?
WHERE item_id = ?

-- name: next_waiting
-- The turn that begins next.
SELECT seq, ready_at, last_at, item_id, tries FROM inbox WHERE {turn_that_waits} AND kind IN ('message', 'internal')
ORDER BY {by_place:ASC} LIMIT 1

-- name: turn_in_place
-- A waiting turn at the place that it came to.
SELECT item_id FROM inbox WHERE {turn_that_waits} AND place = ? AND seq = ?

-- name: turn_anywhere
-- A waiting turn at any place: the query may read all waiting rows of the lane.
SELECT item_id FROM inbox WHERE {turn_that_waits} AND seq = ?

-- name: last_open_place
-- The last place in the queue of a lane; 0 if no message waits or runs.
SELECT coalesce(max(place), 0) FROM inbox WHERE session_key = ? AND outcome IS NULL

-- name: items_of_next
-- The messages of a waiting turn: the one that leads it, then those that joined it.
SELECT item_id, seq, owner, merged_into, admitted_at, transcript_id, payload, place, sender, growing
FROM inbox WHERE item_id = ? AND outcome IS NULL AND token IS NULL
UNION ALL
SELECT item_id, seq, owner, merged_into, admitted_at, transcript_id, payload, place, sender, growing
FROM inbox WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND merged_into = ?

-- name: bury_item
-- Make a dead letter of a waiting message, which is kept.
UPDATE inbox SET outcome = 'dead', settled_at = ?, settled_by = ?, problem = ?
WHERE item_id = ? AND {waits_for_its_turn}

-- name: set_ready_at
-- Set the time from which the turn stands in line.
UPDATE inbox SET ready_at = ? WHERE item_id = ?

-- name: count_waiting_turns
-- Count the turns that wait on a lane.
SELECT count(*) FROM inbox WHERE {turn_that_waits} AND kind IN ('message', 'internal')

-- name: take_item
-- Give a waiting message to the turn with that token, which begins.
UPDATE inbox SET token = ?, steered_into = NULL WHERE item_id = ? AND {waits_for_its_turn}

-- name: steer_item
-- Give a waiting message to the running turn with that token. Programs of schema 6 on the same server know a steered
-- message by `messages` = 0 alone; statements that give the message back count it again, for them as well.
UPDATE inbox SET token = ?, steered_into = ?, messages = 0, tries = 0, growing = NULL
WHERE item_id = ? AND {waits_for_its_turn} AND merged_into IS NULL

-- name: items_of_turn
-- The messages of a turn: the one that leads it, then steered ones, then those that joined it before it began.
SELECT item_id, seq, owner, merged_into, admitted_at, transcript_id, payload, place, sender, growing,
    {flag:{was_steered}} AS steered
FROM inbox WHERE session_key = ? AND outcome IS NULL AND token = ?
ORDER BY merged_into IS NOT NULL, place, seq

-- name: turn_was_taken_back
-- Whether people deleted messages of a turn.
SELECT 1 FROM inbox WHERE session_key = ? AND token = ? AND outcome = 'cancelled' LIMIT 1

-- name: note_rows
-- Store the transcript row of the turn's messages that had none.
UPDATE inbox SET transcript_id = ? WHERE session_key = ? AND outcome IS NULL AND token = ? AND transcript_id IS NULL

-- name: note_row
-- Store the transcript row of a message, or that it has none.
UPDATE inbox SET transcript_id = ? WHERE item_id = ?

-- name: first_row_of_turn
-- The place in a session of the first row that a turn's messages have there.
SELECT min(messages.seq) FROM inbox JOIN messages ON messages.message_id = inbox.transcript_id
WHERE inbox.session_key = ? AND inbox.outcome IS NULL AND inbox.token = ? AND messages.session_id = ?

-- name: spoken_behind
-- Whether a person's message stands behind a message in its session, apart from the listed ones.
SELECT 1 FROM messages AS own JOIN messages AS later ON later.session_id = own.session_id AND later.seq > own.seq
WHERE own.message_id = ? AND later.role = 'user' AND later.observed = 0 AND later.hidden_because IS NULL
    AND later.message_id NOT IN ({each_number_of}) LIMIT 1

-- name: message_that_stands
-- The session of a visible message and the number of its calls; no row if it is hidden.
SELECT session_id, {number_of_calls} FROM messages
WHERE message_id = ? AND hidden_because IS NULL

-- name: withdraw_message
-- Hide a row whose message is appended elsewhere; without `hidden_by`, no restore shows it again.
UPDATE messages SET hidden_because = 'rewound', hidden_by = NULL WHERE message_id = ?

-- name: note_growing
-- Store, with the message that leads a running turn, the platform message in which the reply grows.
UPDATE inbox SET growing = ?
WHERE session_key = ? AND outcome IS NULL AND token = ? AND merged_into IS NULL
    AND NOT ({was_steered})

-- name: grows_no_more
-- Forget the platform message in which the reply grew.
UPDATE inbox SET growing = ? WHERE item_id = ?

-- name: waiting_half_answered
-- Turns that wait for another try and whose replies were shown in part.
SELECT item_id, seq, owner, merged_into, admitted_at, transcript_id, payload, place, sender, growing
FROM inbox WHERE {turn_that_waits} AND growing IS NOT NULL

-- name: settle_turn
-- Settle all messages of a turn; the transcript has their content.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, problem = ?, payload = NULL
WHERE session_key = ? AND outcome IS NULL AND token = ?

-- name: settle_turn_as_begun
-- Settle the messages of a turn that have no transcript row: an edited message got one, so the count tells of it.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, problem = ?, payload = NULL
WHERE session_key = ? AND outcome IS NULL AND token = ? AND transcript_id IS NULL

-- name: bury_turn
-- Make dead letters of the messages of a turn, except steered ones.
UPDATE inbox SET outcome = 'dead', settled_at = ?, settled_by = ?, problem = ?
WHERE session_key = ? AND outcome IS NULL AND token = ? AND NOT ({was_steered})

-- name: give_back_turn
-- Let all messages of a turn wait again in their old places.
UPDATE inbox SET token = NULL, messages = {greater}(messages, 1), ready_at = ?
WHERE session_key = ? AND outcome IS NULL AND token = ?

-- name: give_back_item
-- Let a steered message wait again in its old place.
UPDATE inbox SET token = NULL, messages = {greater}(messages, 1), ready_at = ?
WHERE item_id = ? AND outcome IS NULL AND token IS NOT NULL

-- name: settle_waiting
-- Settle all waiting messages of a lane.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, payload = NULL
WHERE session_key = ? AND {waits_for_its_turn}

-- name: open_items
-- All messages that wait or run on a lane.
SELECT item_id, seq, solo, merged_into, token, admitted_at, payload, place, tries
FROM inbox WHERE session_key = ? AND outcome IS NULL AND kind IN ('message', 'internal')

-- name: waiting_item
-- A waiting message.
SELECT item_id, merged_into, payload FROM inbox
WHERE session_key = ? AND seq = ? AND {waits_for_its_turn}

-- name: set_tries
-- Keep the tries of a turn that was cut off, before another one becomes the next.
UPDATE inbox SET tries = ? WHERE item_id = ?

-- name: set_place
-- Move a waiting turn.
UPDATE inbox SET place = ? WHERE item_id = ?

-- name: kept_event
-- An accepted message by its platform's event.
SELECT item_id, session_key, seq, merged_into, token, outcome, payload
FROM inbox WHERE event = ? AND kind IN ('message', 'internal')

-- name: set_payload
-- Replace the content of a message.
UPDATE inbox SET payload = ? WHERE item_id = ?

-- name: change_size
-- Change the size of the turn that a message leads.
UPDATE inbox SET messages = messages + ?, characters = characters + ? WHERE item_id = ?

-- name: cancel_item
-- Settle one waiting message.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, payload = NULL
WHERE item_id = ? AND {waits_for_its_turn}

-- name: retract_item
-- Settle one deleted message that waits or runs.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, payload = NULL
WHERE item_id = ? AND outcome IS NULL AND kind IN ('message', 'internal')

-- name: settle_noted
-- Settle a command or a change that was noted.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, problem = ?, payload = NULL
WHERE item_id = ? AND outcome IS NULL AND kind IN ('command', 'change')

-- name: drop_dead_item
-- Settle a dead letter that its author deleted, so that it is never tried again.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, problem = NULL, payload = NULL
WHERE item_id = ? AND outcome = 'dead'

-- name: open_commands
-- Commands and changes that were noted and not settled, because their process is gone.
SELECT item_id, session_key, seq, owner, payload FROM inbox
WHERE outcome IS NULL AND kind IN ('command', 'change')

-- name: forget_event
-- Forget the event of a change that was not carried out, so that a second delivery is no duplicate.
UPDATE inbox SET event = NULL WHERE item_id = ?

-- name: hand_over_event
-- Free the event of a message for the row that asks for it once more.
UPDATE inbox SET event = NULL WHERE event = ?

-- name: dead_items
-- Messages whose turns failed for good, the newest first.
SELECT item_id, seq, session_key, owner, payload, admitted_at, settled_at, problem
FROM inbox WHERE outcome = 'dead' AND item_id < ? ORDER BY item_id DESC LIMIT ?

-- name: dead_item
-- A dead letter.
SELECT session_key, seq, merged_into FROM inbox WHERE item_id = ? AND outcome = 'dead'

-- name: dead_turn
-- The dead letters of one turn: the message that leads it, then the others.
SELECT item_id, seq, owner, merged_into, admitted_at, transcript_id, payload, place, sender
FROM inbox WHERE session_key = ? AND outcome = 'dead' AND (seq = ? OR merged_into = ?)
ORDER BY merged_into IS NOT NULL, seq

-- name: revive
-- Let the dead letters of one turn wait again, at a place behind all waiting turns.
UPDATE inbox SET outcome = NULL, settled_at = NULL, settled_by = NULL, problem = NULL, token = NULL,
    tries = 0, messages = {greater}(messages, 1), place = ?, ready_at = ?
WHERE session_key = ? AND outcome = 'dead' AND (seq = ? OR merged_into = ?)

-- name: forget_items
-- Forget some messages that were settled long ago.
{forget_items:
    SELECT item_id FROM inbox WHERE item_id < ? AND outcome IS NOT NULL AND outcome <> 'dead' AND settled_at < ?
    ORDER BY item_id LIMIT ?}

-- name: first_settled
-- The time at which the oldest settled message or reply was settled.
SELECT min(settled_at) FROM (
    SELECT min(settled_at) AS settled_at FROM inbox WHERE outcome IS NOT NULL AND outcome <> 'dead'
    UNION ALL SELECT min(settled_at) FROM outbox WHERE state = 'sent'
    UNION ALL SELECT min(settled_at) FROM schedules WHERE state = 'done'
) AS settled

-- name: transcript_version
-- The counters of a session that make up the version of its transcript.
SELECT last_seq, message_count, rewind_count, edit_count FROM totals WHERE session_id = ?

-- name: lane_outcomes
-- The number of a lane's messages by outcome.
SELECT coalesce(outcome, 'open'), count(*) FROM inbox WHERE session_key = ? GROUP BY 1

-- name: lead_item
-- Let a message that joined a turn lead it, because the old leader has left.
{lead_like_head}

-- name: follow_item
-- Let another message follow the new leader.
UPDATE inbox SET merged_into = ? WHERE item_id = ?
