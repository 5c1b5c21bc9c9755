-- name: server_time
-- The time of the database, in microseconds.
SELECT {server_now}

-- name: add_node
-- Add the row of an opening.
INSERT INTO nodes (epoch, slot, name, version, first_id, started_at, expires_at)
VALUES (?, ?, ?, ?, ?, {server_now}, {server_now} + {a_number})

-- name: keep_node
-- Record a heartbeat of an opening that has not been declared dead.
UPDATE nodes SET expires_at = {server_now} + {a_number} WHERE epoch = ?

-- name: all_nodes
-- All openings that have not been declared dead, and whether their heartbeat is overdue.
SELECT epoch, slot, name, version, first_id, {flag:expires_at < {server_now}} AS silent FROM nodes ORDER BY epoch

-- name: bury_nodes
-- Declare openings dead whose heartbeat is overdue; their writes are refused from then on.
DELETE FROM nodes WHERE expires_at < {server_now}

-- name: forget_node
-- Remove an opening that has ended.
DELETE FROM nodes WHERE epoch = ?

-- name: forget_nodes_named
-- Remove the openings of a node whose place was taken.
DELETE FROM nodes WHERE name = ?

-- name: add_signal
-- Leave a signal for the node that runs the turn.
INSERT INTO mail (mail_id, epoch, session_key, token, kind, body) VALUES (?, ?, ?, ?, ?, ?)

-- name: signals_for
-- The signals for a node, in the order in which they were left.
SELECT mail_id AS signal_id, session_key, token, kind, body FROM mail WHERE epoch = ? ORDER BY mail_id LIMIT ?

-- name: forget_signals
-- Remove signals that were read.
DELETE FROM mail WHERE mail_id IN ({each_number_of})

-- name: forget_lost_mail
-- Remove signals for nodes that are gone.
DELETE FROM mail WHERE epoch NOT IN (SELECT epoch FROM nodes)

-- name: leases_of
-- The lanes whose turns an opening runs.
SELECT session_key, lease_token FROM lanes WHERE lease_epoch = ?
