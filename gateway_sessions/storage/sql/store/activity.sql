-- name: lanes_in_use_since
-- Lanes behind one on which anything was said since then, in the order of their keys.
SELECT DISTINCT session_key FROM sessions JOIN totals USING (session_id)
WHERE session_key > ? AND last_active >= ? ORDER BY session_key LIMIT ?

-- name: moments_on_lane
-- When people wrote on a lane since then, in their order.
SELECT sent_at FROM sessions JOIN messages USING (session_id)
WHERE session_key = ? AND sent_at >= ? AND role = 'user' ORDER BY sent_at
