-- name: known_event
-- Whether an event of a platform was accepted before.
SELECT session_key, seq FROM inbox WHERE event = ?

-- name: waiting_events
-- The newest events of platforms that were accepted and have not had their turn.
SELECT event, seq, session_key FROM inbox WHERE outcome IS NULL AND event IS NOT NULL ORDER BY item_id DESC LIMIT ?

-- name: add_item
-- A message was accepted.
INSERT INTO inbox (item_id, session_key, seq, place, event, owner, sender, kind, solo, media, merged_into, messages,
    characters, last_at, admitted_at, ready_at, token, payload, outcome, settled_at, settled_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: oldest_waiting
-- The turn that makes room for another one: the first that is nobody's explicit wish.
SELECT seq, item_id FROM inbox WHERE {turn_that_waits} AND solo = 0 AND kind = 'message'
ORDER BY {by_place:ASC} LIMIT 1

-- name: count_deferred
-- How many of the waiting turns were asked for with /queue.
SELECT count(*) FROM inbox WHERE {turn_that_waits} AND solo = 1 AND kind = 'message'

-- name: extend_item
-- Another message became part of a waiting turn.
UPDATE inbox SET messages = messages + 1, characters = characters + ?, media = {greater}(media, ?), last_at = ?, ready_at = ?
WHERE item_id = ?

-- name: next_waiting
-- The turn that begins next.
SELECT seq, ready_at, last_at, item_id, tries FROM inbox WHERE {turn_that_waits} AND kind IN ('message', 'internal')
ORDER BY {by_place:ASC} LIMIT 1

-- name: turn_in_place
-- A turn that waits where it came.
SELECT item_id FROM inbox WHERE {turn_that_waits} AND place = ? AND seq = ?

-- name: turn_anywhere
-- A turn that waits, wherever it was put; all that wait may have to be looked at.
SELECT item_id FROM inbox WHERE {turn_that_waits} AND seq = ?

-- name: last_open_place
-- How far the queue of a lane reaches; 0 if nothing waits or runs.
SELECT coalesce(max(place), 0) FROM inbox WHERE session_key = ? AND outcome IS NULL

-- name: items_of_next
-- What a turn that waits is about: the message that leads it, then what became part of it.
SELECT item_id, seq, owner, merged_into, admitted_at, transcript_id, payload, place, sender, growing
FROM inbox WHERE item_id = ? AND outcome IS NULL AND token IS NULL
UNION ALL
SELECT item_id, seq, owner, merged_into, admitted_at, transcript_id, payload, place, sender, growing
FROM inbox WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND merged_into = ?

-- name: bury_item
-- The turn cannot begin, because of what it is about; that is kept.
UPDATE inbox SET outcome = 'dead', settled_at = ?, settled_by = ?, problem = ?
WHERE item_id = ? AND {waits_for_its_turn}

-- name: set_ready_at
-- The turn may begin at that time, and stands in line from then on.
UPDATE inbox SET ready_at = ? WHERE item_id = ?

-- name: count_waiting_turns
-- How many turns wait on a lane.
SELECT count(*) FROM inbox WHERE {turn_that_waits} AND kind IN ('message', 'internal')

-- name: take_item
-- A waiting message is given to whoever has that token: its turn begins.
UPDATE inbox SET token = ?, steered_into = NULL WHERE item_id = ? AND {waits_for_its_turn}

-- name: steer_item
-- It becomes part of the turn with that token, which runs: it was said into it. Programs of schema 6 that use the same
-- server know that by `messages` alone; whoever gives the message back counts it again, for them as well.
UPDATE inbox SET token = ?, steered_into = ?, messages = 0, tries = 0, growing = NULL
WHERE item_id = ? AND {waits_for_its_turn} AND merged_into IS NULL

-- name: items_of_turn
-- What a turn is about: the message that leads it, then what was said into it, then what became part of it before.
SELECT item_id, seq, owner, merged_into, admitted_at, transcript_id, payload, place, sender, growing,
    {flag:{was_steered}}
FROM inbox WHERE session_key = ? AND outcome IS NULL AND token = ?
ORDER BY merged_into IS NOT NULL, place, seq

-- name: turn_was_taken_back
-- Whether people took back what a turn was about that nobody is about any more.
SELECT 1 FROM inbox WHERE session_key = ? AND token = ? AND outcome = 'cancelled' LIMIT 1

-- name: note_rows
-- The transcript has it now.
UPDATE inbox SET transcript_id = ? WHERE session_key = ? AND outcome IS NULL AND token = ? AND transcript_id IS NULL

-- name: note_row
-- The transcript has this message, or does not have it any more.
UPDATE inbox SET transcript_id = ? WHERE item_id = ?

-- name: first_row_of_turn
-- Where the first of a turn's messages stands in a session.
SELECT min(messages.seq) FROM inbox JOIN messages ON messages.message_id = inbox.transcript_id
WHERE inbox.session_key = ? AND inbox.outcome IS NULL AND inbox.token = ? AND messages.session_id = ?

-- name: spoken_behind
-- Whether anybody has spoken behind a message in its session, but for some messages.
SELECT 1 FROM messages AS own JOIN messages AS later ON later.session_id = own.session_id AND later.seq > own.seq
WHERE own.message_id = ? AND later.role = 'user' AND later.hidden_because IS NULL
    AND later.message_id NOT IN ({each_number_of}) LIMIT 1

-- name: message_that_stands
-- Of which conversation a message is part, and how many calls it makes; no row if it is hidden.
SELECT session_id, {number_of_calls} FROM messages
WHERE message_id = ? AND hidden_because IS NULL

-- name: withdraw_message
-- It stands elsewhere from now on; nobody brings it back to where it stood.
UPDATE messages SET hidden_because = 'rewound', hidden_by = NULL WHERE message_id = ?

-- name: note_growing
-- Which message of the platform the answer of a running turn grows in; the message that leads the turn tells.
UPDATE inbox SET growing = ?
WHERE session_key = ? AND outcome IS NULL AND token = ? AND merged_into IS NULL
    AND NOT ({was_steered})

-- name: grows_no_more
-- No answer goes on growing in what was shown of this one.
UPDATE inbox SET growing = ? WHERE item_id = ?

-- name: waiting_half_answered
-- Turns that wait for another try, of whose answers something was shown.
SELECT item_id, seq, owner, merged_into, admitted_at, transcript_id, payload, place, sender, growing
FROM inbox WHERE {turn_that_waits} AND growing IS NOT NULL

-- name: settle_turn
-- The turn has ended; of what was said, the transcript knows.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, problem = ?, payload = NULL
WHERE session_key = ? AND outcome IS NULL AND token = ?

-- name: settle_turn_as_begun
-- The same, as far as nothing of that was written into the transcript since it began.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, problem = ?, payload = NULL
WHERE session_key = ? AND outcome IS NULL AND token = ? AND transcript_id IS NULL

-- name: bury_turn
-- The turn failed for good; what it was about is kept, but for what was said into it.
UPDATE inbox SET outcome = 'dead', settled_at = ?, settled_by = ?, problem = ?
WHERE session_key = ? AND outcome IS NULL AND token = ? AND NOT ({was_steered})

-- name: give_back_turn
-- The turn did not come to an end: what it was about waits again, in its old place.
UPDATE inbox SET token = NULL, messages = {greater}(messages, 1), ready_at = ?
WHERE session_key = ? AND outcome IS NULL AND token = ?

-- name: give_back_item
-- What was said into a turn waits again, in its old place.
UPDATE inbox SET token = NULL, messages = {greater}(messages, 1), ready_at = ?
WHERE item_id = ? AND outcome IS NULL AND token IS NOT NULL

-- name: settle_waiting
-- Everything that waits is taken out of the queue.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, payload = NULL
WHERE session_key = ? AND {waits_for_its_turn}

-- name: open_items
-- All that waits or runs on a lane.
SELECT item_id, seq, solo, merged_into, token, admitted_at, payload, place, tries
FROM inbox WHERE session_key = ? AND outcome IS NULL AND kind IN ('message', 'internal')

-- name: waiting_item
-- A waiting message.
SELECT item_id, merged_into, payload FROM inbox
WHERE session_key = ? AND seq = ? AND {waits_for_its_turn}

-- name: set_tries
-- Another turn is next before one that was cut off, which keeps its count.
UPDATE inbox SET tries = ? WHERE item_id = ?

-- name: set_place
-- The turn begins earlier or later than it came.
UPDATE inbox SET place = ? WHERE item_id = ?

-- name: kept_event
-- A message that was accepted, by the name its platform knows it under.
SELECT item_id, session_key, seq, merged_into, token, outcome, payload
FROM inbox WHERE event = ? AND kind IN ('message', 'internal')

-- name: set_payload
-- The message says something else now.
UPDATE inbox SET payload = ? WHERE item_id = ?

-- name: change_size
-- The turn that a message leads has become longer or shorter.
UPDATE inbox SET messages = messages + ?, characters = characters + ? WHERE item_id = ?

-- name: cancel_item
-- One message is taken out of the queue, and nothing else with it.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, payload = NULL
WHERE item_id = ? AND {waits_for_its_turn}

-- name: retract_item
-- A message was deleted that waits, or that a turn is about: it is done, and nothing else with it.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, payload = NULL
WHERE item_id = ? AND outcome IS NULL AND kind IN ('message', 'internal')

-- name: settle_noted
-- A command or a change was carried out, or never will be.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, problem = ?, payload = NULL
WHERE item_id = ? AND outcome IS NULL AND kind IN ('command', 'change')

-- name: drop_dead_item
-- A message that failed for good was taken back: nobody tries it again.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, problem = NULL, payload = NULL
WHERE item_id = ? AND outcome = 'dead'

-- name: open_commands
-- What was to be carried out at once, of which nobody knows whether it was, because its process is gone.
SELECT item_id, session_key, seq, owner, payload FROM inbox
WHERE outcome IS NULL AND kind IN ('command', 'change')

-- name: forget_event
-- It was not carried out, so it is news when it comes again.
UPDATE inbox SET event = NULL WHERE item_id = ?

-- name: hand_over_event
-- The message is known by another row from now on, which asks for it once more.
UPDATE inbox SET event = NULL WHERE event = ?

-- name: dead_items
-- Messages whose turns failed for good, the newest first.
SELECT item_id, seq, session_key, owner, payload, admitted_at, settled_at, problem
FROM inbox WHERE outcome = 'dead' AND item_id < ? ORDER BY item_id DESC LIMIT ?

-- name: dead_item
-- One of them.
SELECT session_key, seq, merged_into FROM inbox WHERE item_id = ? AND outcome = 'dead'

-- name: dead_turn
-- One of them, with all that failed with it as part of one turn: the message that leads it, then the others.
SELECT item_id, seq, owner, merged_into, admitted_at, transcript_id, payload, place, sender
FROM inbox WHERE session_key = ? AND outcome = 'dead' AND (seq = ? OR merged_into = ?)
ORDER BY merged_into IS NOT NULL, seq

-- name: revive
-- It waits again, behind everything that waits, with all that was part of it.
UPDATE inbox SET outcome = NULL, settled_at = NULL, settled_by = NULL, problem = NULL, token = NULL,
    tries = 0, messages = {greater}(messages, 1), place = ?, ready_at = ?
WHERE session_key = ? AND outcome = 'dead' AND (seq = ? OR merged_into = ?)

-- name: forget_items
-- Whatever was settled long ago is not known any more.
{forget_items:
    SELECT item_id FROM inbox WHERE item_id < ? AND outcome IS NOT NULL AND outcome <> 'dead' AND settled_at < ?
    ORDER BY item_id LIMIT ?}

-- name: first_settled
-- When the oldest of what is settled was, messages and replies.
SELECT min(settled_at) FROM (
    SELECT min(settled_at) AS settled_at FROM inbox WHERE outcome IS NOT NULL AND outcome <> 'dead'
    UNION ALL SELECT min(settled_at) FROM outbox WHERE state = 'sent'
) AS settled

-- name: transcript_version
-- What changes whenever anybody writes to a session.
SELECT last_seq, message_count, rewind_count, edit_count FROM totals WHERE session_id = ?

-- name: lane_outcomes
-- How often each thing became of what was accepted on a lane, as far as it is still known.
SELECT coalesce(outcome, 'open'), count(*) FROM inbox WHERE session_key = ? GROUP BY 1

-- name: lead_item
-- A merged message leads its turn, because the one that led it is not part of it any more.
{lead_like_head}

-- name: follow_item
-- Another one follows it.
UPDATE inbox SET merged_into = ? WHERE item_id = ?
