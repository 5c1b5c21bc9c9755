-- name: get_lane
-- The lease, the attempts and the moved session of a lane.
SELECT lease_epoch, attempts, moved_session_id FROM lanes WHERE session_key = ?

-- name: mark_moved
-- Store that the lane's session was resumed elsewhere; the people of the lane are told with their next message.
INSERT INTO lanes (session_key, moved_session_id) VALUES (?, ?)
{update_instead:session_key} moved_session_id = {given:moved_session_id}

-- name: forget_moved
-- Forget the moved session: the lane has a session again.
UPDATE lanes SET moved_session_id = NULL WHERE session_key = ? AND moved_session_id IS NOT NULL

-- name: lanes_left_behind
-- Lanes that are leased to openings of the store other than these.
SELECT session_key FROM lanes WHERE lease_epoch IS NOT NULL AND lease_epoch NOT IN ({each_number_of})
ORDER BY session_key LIMIT ?

-- name: any_turn_of
-- Whether any turn runs in that opening of the store.
SELECT 1 FROM lanes WHERE lease_epoch = ? LIMIT 1

-- name: last_heard_of
-- The latest time at which a message was written in any session.
SELECT max(last_active) FROM totals

-- name: set_attempts
-- Store how many times in a row the lane's turn was cut off.
INSERT INTO lanes (session_key, attempts) VALUES (?, ?)
{update_instead:session_key} attempts = {given:attempts}

-- name: clear_attempts
-- Forget the attempts after a turn succeeded.
UPDATE lanes SET attempts = 0 WHERE session_key = ? AND attempts > 0

-- name: clear_attempts_of_nothing
-- Forget the attempts when a session begins, unless a turn waits: the attempts may be its own.
UPDATE lanes SET attempts = 0 WHERE session_key = ? AND attempts > 0 AND waiting = 0

-- name: tried_lanes
-- Lanes whose turn was cut off and has not succeeded since.
SELECT session_key, attempts FROM lanes WHERE attempts > 0 ORDER BY session_key

-- name: delete_idle_lane
-- Remove the row of a lane that was never used for turns.
DELETE FROM lanes WHERE session_key = ? AND lease_epoch IS NULL AND waiting = 0 AND next_seq = 1

-- name: lane_row
-- All columns of a lane.
SELECT lease_epoch, lease_token, leased_at, attempts, moved_session_id, next_seq, waiting, ready_at
FROM lanes WHERE session_key = ?

-- name: lane_and_queue
-- All columns of a lane, the version of its entry, its next turn, and the one that would begin last.
SELECT lease_epoch, lease_token, leased_at, attempts, moved_session_id, next_seq, waiting, lanes.ready_at,
    (SELECT version FROM entries JOIN clocks USING (entry_id) WHERE entries.session_key = lanes.session_key)
        AS entry_version,
    head.seq AS head_seq, head.ready_at AS head_ready_at, head.last_at AS head_last_at, head.item_id AS head_item_id,
    head.tries AS head_tries,
    last.seq AS last_seq, last.sender, last.solo, last.media, last.kind, last.messages, last.characters,
    last.admitted_at AS first_at, last.last_at, last.tries AS last_tries, last.item_id AS last_item_id
FROM lanes
LEFT JOIN inbox AS head ON head.item_id = (
    SELECT item_id FROM inbox WHERE {turn_that_waits} AND kind IN ('message', 'internal')
    ORDER BY {by_place:ASC} LIMIT 1)
LEFT JOIN inbox AS last ON last.item_id = (
    SELECT item_id FROM inbox WHERE {turn_that_waits} AND kind IN ('message', 'internal')
    ORDER BY {by_place:DESC} LIMIT 1)
WHERE lanes.session_key = ?

-- name: put_lane_row
-- Write all columns of a lane.
INSERT INTO lanes (session_key, lease_epoch, lease_token, leased_at, attempts, moved_session_id, next_seq, waiting, ready_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
{update_instead:session_key}
    lease_epoch = {given:lease_epoch}, lease_token = {given:lease_token}, leased_at = {given:leased_at},
    attempts = {given:attempts}, moved_session_id = {given:moved_session_id}, next_seq = {given:next_seq},
    waiting = {given:waiting}, ready_at = {given:ready_at}

-- name: lease_calm_lane
-- Lease a calm lane that is as it was known to the message that comes next.
UPDATE lanes SET lease_epoch = ?, leased_at = ?, lease_token = lease_token + 1, next_seq = next_seq + 1
WHERE session_key = ? AND next_seq = ? AND lease_token = ?
    AND lease_epoch IS NULL AND waiting = 0 AND attempts = 0 AND ready_at IS NULL AND moved_session_id IS NULL

-- name: queue_on_calm_lane
-- Let the message that comes next wait on a calm lane that is as it was known.
UPDATE lanes SET next_seq = next_seq + 1, waiting = 1, ready_at = ?
WHERE session_key = ? AND next_seq = ? AND lease_token = ?
    AND lease_epoch IS NULL AND waiting = 0 AND attempts = 0 AND ready_at IS NULL AND moved_session_id IS NULL

-- name: free_calm_lane
-- Give the lane back after a turn, if no turn waits.
UPDATE lanes SET lease_epoch = NULL, leased_at = NULL, attempts = 0
WHERE session_key = ? AND lease_epoch = ? AND lease_token = ? AND waiting = 0

-- name: lane_is_running
-- Whether a turn runs.
SELECT 1 FROM lanes WHERE session_key = ? AND lease_epoch IS NOT NULL

-- name: lane_is_busy
-- Whether a turn runs or waits.
SELECT 1 FROM lanes WHERE session_key = ? AND (lease_epoch IS NOT NULL OR waiting > 0)

-- name: ready_lanes
-- Lanes whose next turn may begin, those that have waited longest first.
SELECT lanes.session_key, owner, ready_at FROM lanes LEFT JOIN entries ON entries.session_key = lanes.session_key
WHERE ready_at <= ? AND (owner IS NULL OR owner NOT IN ({each_of}))
ORDER BY ready_at, lanes.session_key LIMIT ?

-- name: waiting_among
-- Those of some lanes on which turns wait, with the time at which the next one may begin.
SELECT lanes.session_key, owner, ready_at FROM lanes LEFT JOIN entries ON entries.session_key = lanes.session_key
WHERE lanes.session_key IN ({each_of}) AND ready_at IS NOT NULL ORDER BY ready_at, lanes.session_key

-- name: next_ready
-- The time at which the next lane becomes ready.
SELECT min(ready_at) FROM lanes WHERE ready_at > ?

-- name: put_off_lane
-- Put off the next turn of a lane.
UPDATE lanes SET ready_at = ? WHERE session_key = ? AND ready_at IS NOT NULL

-- name: waiting_lanes
-- Lanes with waiting turns, their numbers, the next seq and the owner.
SELECT lanes.session_key, waiting, next_seq, owner FROM lanes
LEFT JOIN entries ON entries.session_key = lanes.session_key WHERE waiting <> 0
