-- name: get_meta
-- One fact about the store.
SELECT value FROM meta WHERE name = ?

-- name: set_meta
-- Remember one fact about the store.
INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: get_generation
-- How often the truth behind sessions.json has changed.
SELECT value FROM meta WHERE name = 'generation'

-- name: set_generation
-- The batch changed what sessions.json shows.
INSERT INTO meta (name, value) VALUES ('generation', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: last_change_id
-- The largest id given to a transition so far.
SELECT max(change_id) FROM transitions
