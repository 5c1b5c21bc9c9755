-- name: get_meta
-- One fact about the store.
SELECT value FROM meta WHERE name = ?

-- name: set_meta
-- Store one fact about the store.
INSERT INTO meta (name, value) VALUES (?, ?) {update_instead:name} value = {given:value}

-- name: last_change_id
-- The largest id in all tables whose ids the program makes.
SELECT max(id) FROM (
    SELECT max(change_id) AS id FROM transitions
    UNION ALL SELECT max(message_id) FROM messages
    UNION ALL SELECT max(change_id) FROM index_changes
    UNION ALL SELECT max(item_id) FROM inbox
    UNION ALL SELECT max(reply_id) FROM outbox
    UNION ALL SELECT {whole:value} FROM meta WHERE name = 'index_changes_cleared'
) AS ids
