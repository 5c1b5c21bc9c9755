-- name: count_lanes
-- How many lanes have a session.
SELECT count(*) FROM entries
