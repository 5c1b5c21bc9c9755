-- name: get_meta
-- One fact about the store.
SELECT value FROM meta WHERE name = ?

-- name: set_meta
-- Remember one fact about the store.
INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: last_change_id
-- The largest id given to a transition so far.
SELECT max(change_id) FROM transitions
