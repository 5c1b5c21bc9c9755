-- name: lanes_in_use_since
-- Lanes with messages since then, behind a key, in the order of their keys.
SELECT DISTINCT session_key FROM sessions JOIN totals USING (session_id)
WHERE session_key > ? AND last_active >= ? ORDER BY session_key LIMIT ?

-- name: moments_on_lane
-- The instants at which people wrote on a lane since then, in their order.
SELECT sent_at FROM sessions JOIN messages USING (session_id)
WHERE session_key = ? AND sent_at >= ? AND role = 'user' AND observed = 0 ORDER BY sent_at
