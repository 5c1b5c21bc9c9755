-- fragment: schedule
-- All columns of a schedule, as programs read them.
name, kind, session_key, owner, platform, account, task, timing, state, due_at, last_at, runs, version, created_at,
settled_at, problem

-- name: schedule_named
-- The schedule of that name.
SELECT {schedule} FROM schedules WHERE name = ?

-- name: schedules_by_name
-- Schedules in the order of their names, without what is said once.
SELECT {schedule} FROM schedules WHERE name > ? AND name NOT LIKE 'say:%' ORDER BY name LIMIT ?

-- name: add_schedule
-- Add a schedule.
INSERT INTO schedules (name, kind, session_key, owner, platform, account, task, timing, state, due_at, last_at, runs,
    version, created_at, settled_at, problem)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: replace_schedule
-- Give a schedule another task, another timing and another state.
UPDATE schedules SET kind = ?, session_key = ?, owner = ?, platform = ?, account = ?, task = ?, timing = ?, state = ?,
    due_at = ?, settled_at = NULL, problem = NULL, version = version + 1
WHERE name = ?

-- name: set_schedule_state
-- Let a schedule rest, or wait for its next time.
UPDATE schedules SET state = ?, due_at = ?, version = version + 1 WHERE name = ? AND version = ?

-- name: run_schedule
-- Note that a schedule has come to its time, unless another node did so: its version was another one then.
UPDATE schedules SET state = ?, due_at = ?, last_at = ?, runs = runs + ?, task = ?, settled_at = ?, problem = ?,
    version = version + 1
WHERE name = ? AND version = ? AND state = 'waiting'

-- name: remove_schedule
-- Remove a schedule.
DELETE FROM schedules WHERE name = ?

-- name: cancel_schedule
-- Remove a schedule that still waits for its time.
DELETE FROM schedules WHERE name = ? AND state = 'waiting'

-- name: due_schedules
-- Schedules of a kind whose time has come, the earliest first, behind one.
SELECT {schedule} FROM schedules
WHERE state = 'waiting' AND kind = ? AND due_at <= ? AND (due_at, name) > (?, ?) ORDER BY due_at, name LIMIT ?

-- name: next_schedule_due
-- The time at which the next schedule comes to its time.
SELECT min(due_at) FROM schedules WHERE state = 'waiting' AND kind = ? AND due_at > ?

-- name: forget_schedules
-- Forget what was done once, long ago.
DELETE FROM schedules WHERE state = 'done' AND settled_at < ?

-- name: delete_schedules_of_person
-- Remove the schedules of a person, and those on the person's lanes, from before the erasure.
DELETE FROM schedules WHERE created_at <= ? AND (owner = ? OR session_key IN ({each_of}))

-- name: schedules_of_person
-- The schedules of a person, and those on the person's lanes.
SELECT {schedule} FROM schedules WHERE task IS NOT NULL AND (owner = ? OR session_key IN ({each_of})) ORDER BY name

-- name: schedule_owners
-- The owners of the schedules of a lane.
SELECT DISTINCT owner FROM schedules WHERE session_key = ? AND account = ''

-- name: give_schedules
-- Give the schedules of a lane to a named account.
UPDATE schedules SET session_key = ?, owner = ?, account = ?, version = version + 1
WHERE session_key = ? AND owner = ? AND account = ''
