-- name: known_event
-- Whether an event of a platform was accepted before.
SELECT session_key, seq FROM inbox WHERE event = ?

-- name: add_item
-- A message was accepted.
INSERT INTO inbox (item_id, session_key, seq, place, event, owner, sender, kind, solo, media, merged_into, messages,
    characters, last_at, admitted_at, ready_at, token, payload, outcome, settled_at, settled_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: last_waiting
-- The turn that would begin last; a message may become part of it.
SELECT seq, sender, solo, media, kind, messages, characters, admitted_at, last_at, place, item_id
FROM inbox WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND merged_into IS NULL AND kind IN ('message', 'internal')
ORDER BY place DESC LIMIT 1

-- name: oldest_waiting
-- The turn that makes room for another one: the first that is nobody's explicit wish.
SELECT seq FROM inbox
WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND merged_into IS NULL AND solo = 0 AND kind = 'message'
ORDER BY place LIMIT 1

-- name: count_deferred
-- How many of the waiting turns were asked for with /queue.
SELECT count(*) FROM inbox
WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND merged_into IS NULL AND solo = 1 AND kind = 'message'

-- name: extend_item
-- Another message became part of a waiting turn.
UPDATE inbox SET messages = messages + 1, characters = characters + ?, media = max(media, ?), last_at = ?, ready_at = ?
WHERE item_id = ?

-- name: next_waiting
-- The turn that begins next.
SELECT seq, ready_at FROM inbox
WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND merged_into IS NULL AND kind IN ('message', 'internal')
ORDER BY place LIMIT 1

-- name: count_waiting_turns
-- How many turns wait on a lane.
SELECT count(*) FROM inbox
WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND merged_into IS NULL AND kind IN ('message', 'internal')

-- name: take_turn
-- A turn begins: its message and all that became part of it are given to whoever has that token.
UPDATE inbox SET token = ? WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND kind IN ('message', 'internal')
    AND (seq = ? OR merged_into = ?)

-- name: steer_item
-- A waiting message becomes part of the running turn.
UPDATE inbox SET token = ? WHERE session_key = ? AND seq = ? AND outcome IS NULL AND token IS NULL AND merged_into IS NULL

-- name: items_of_turn
-- What a turn is about, in the order in which it came.
SELECT item_id, seq, owner, kind, solo, merged_into, admitted_at, transcript_id, payload
FROM inbox WHERE session_key = ? AND outcome IS NULL AND token = ? ORDER BY seq

-- name: note_row
-- The transcript has it now.
UPDATE inbox SET transcript_id = ? WHERE session_key = ? AND outcome IS NULL AND token = ? AND transcript_id IS NULL

-- name: settle_turn
-- The turn has ended; of what was said, the transcript knows.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, problem = ?, payload = NULL
WHERE session_key = ? AND outcome IS NULL AND token = ?

-- name: bury_turn
-- The turn failed for good; what it was about is kept.
UPDATE inbox SET outcome = 'dead', settled_at = ?, settled_by = ?, problem = ?
WHERE session_key = ? AND outcome IS NULL AND token = ?

-- name: give_back_turn
-- The turn did not come to an end: what it was about waits again, in its old place.
UPDATE inbox SET token = NULL, ready_at = max(ready_at, ?)
WHERE session_key = ? AND outcome IS NULL AND token IS NOT NULL

-- name: settle_waiting
-- Everything that waits is taken out of the queue.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, payload = NULL
WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND kind IN ('message', 'internal')

-- name: settle_item
-- One waiting turn is taken out of the queue, with all that became part of it.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, payload = NULL
WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND kind IN ('message', 'internal') AND (seq = ? OR merged_into = ?)

-- name: open_items
-- All that waits or runs on a lane, in the order of its turns.
SELECT item_id, seq, solo, merged_into, token, admitted_at, payload, place, ready_at
FROM inbox WHERE session_key = ? AND outcome IS NULL AND kind IN ('message', 'internal') ORDER BY place, seq

-- name: set_place
-- The turn begins earlier or later than it came.
UPDATE inbox SET place = ? WHERE item_id = ?

-- name: open_event
-- A message that waits or runs, by the name its platform knows it under.
SELECT item_id, session_key, seq, merged_into, token, payload, transcript_id, characters
FROM inbox WHERE event = ? AND outcome IS NULL

-- name: set_payload
-- The message says something else now.
UPDATE inbox SET payload = ?, characters = ? WHERE item_id = ?

-- name: settle_command
-- A command was carried out.
UPDATE inbox SET outcome = ?, settled_at = ?, settled_by = ?, problem = ?, payload = NULL
WHERE item_id = ? AND outcome IS NULL

-- name: open_commands
-- Commands and changes of earlier processes of which nobody knows whether they were carried out.
SELECT item_id, session_key, seq, owner, payload FROM inbox
WHERE outcome IS NULL AND kind IN ('command', 'change') AND item_id < ?

-- name: dead_items
-- Messages whose turns failed for good, the newest first.
SELECT item_id, seq, session_key, owner, payload, admitted_at, settled_at, problem
FROM inbox WHERE outcome = 'dead' AND item_id < ? ORDER BY item_id DESC LIMIT ?

-- name: dead_item
-- One of them.
SELECT session_key, seq, merged_into FROM inbox WHERE item_id = ? AND outcome = 'dead'

-- name: revive
-- It waits again, behind everything that waits, with all that was part of it.
UPDATE inbox SET outcome = NULL, settled_at = NULL, settled_by = NULL, problem = NULL, token = NULL, transcript_id = NULL,
    place = ?, ready_at = ?
WHERE session_key = ? AND outcome = 'dead' AND (seq = ? OR merged_into = ?)

-- name: forget_items
-- Whatever was settled long ago is not known any more.
DELETE FROM inbox WHERE item_id IN (
    SELECT item_id FROM inbox WHERE item_id < ? AND outcome IS NOT NULL AND outcome <> 'dead' AND settled_at < ?
    ORDER BY item_id LIMIT ?)

-- name: transcript_version
-- What changes whenever anybody writes to a session.
SELECT last_seq, message_count, rewind_count FROM totals WHERE session_id = ?

-- name: lane_outcomes
-- How often each thing became of what was accepted on a lane, as far as it is still known.
SELECT coalesce(outcome, 'open'), count(*) FROM inbox WHERE session_key = ? GROUP BY 1

-- name: lead_item
-- A merged message leads its turn, because the one that led it was taken back.
UPDATE inbox SET merged_into = NULL,
    (place, messages, characters, media, solo, ready_at) =
        (SELECT place, messages - 1, characters, media, solo, ready_at FROM inbox WHERE item_id = ?)
WHERE item_id = ?

-- name: follow_item
-- The others follow it.
UPDATE inbox SET merged_into = ? WHERE session_key = ? AND merged_into = ? AND seq <> ? AND outcome IS NULL
