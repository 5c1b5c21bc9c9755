-- name: server_time
-- What the clock of the database says, in microseconds.
SELECT {server_now}

-- name: add_node
-- An opening of the store lives from now on.
INSERT INTO nodes (epoch, slot, name, version, first_id, started_at, expires_at)
VALUES (?, ?, ?, ?, ?, {server_now}, {server_now} + {a_number})

-- name: keep_node
-- It still lives.
UPDATE nodes SET expires_at = {server_now} + {a_number} WHERE epoch = ?

-- name: all_nodes
-- All that have not been declared dead, and whether their time has run out.
SELECT epoch, slot, name, version, first_id, {flag:expires_at < {server_now}} FROM nodes ORDER BY epoch

-- name: bury_nodes
-- Whoever has said nothing for too long is dead, and changes nothing any more.
DELETE FROM nodes WHERE expires_at < {server_now}

-- name: forget_node
-- It has ended.
DELETE FROM nodes WHERE epoch = ?

-- name: forget_nodes_named
-- Its place has been taken.
DELETE FROM nodes WHERE name = ?

-- name: add_signal
-- Somebody else runs the turn.
INSERT INTO mail (mail_id, epoch, session_key, token, kind, body) VALUES (?, ?, ?, ?, ?, ?)

-- name: signals_for
-- What the others ask for, in the order in which they asked.
SELECT mail_id, session_key, token, kind, body FROM mail WHERE epoch = ? ORDER BY mail_id LIMIT ?

-- name: forget_signals
-- It was read.
DELETE FROM mail WHERE mail_id IN ({each_number_of})

-- name: forget_lost_mail
-- Whoever it was for is gone.
DELETE FROM mail WHERE epoch NOT IN (SELECT epoch FROM nodes)

-- name: leases_of
-- The lanes whose turns an opening runs.
SELECT session_key, lease_token FROM lanes WHERE lease_epoch = ?
