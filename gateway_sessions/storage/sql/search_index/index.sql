-- name: get_state
-- Everything known about the index as a whole.
SELECT name, value FROM state

-- name: set_state
-- Remember one fact about the index.
INSERT INTO state (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: add_document
-- The tokens of a message, and what it can be filtered by.
INSERT INTO documents (rowid, labels, text) VALUES (?, ?, ?)

-- name: add_revision
-- Earlier documents of the message do not count any more.
INSERT INTO revisions (document_id, message_id) VALUES (?, ?) ON CONFLICT (document_id) DO NOTHING

-- name: find_newest
-- Messages that match, the newest documents first.
SELECT documents.rowid, coalesce(own.message_id, documents.rowid)
FROM documents LEFT JOIN revisions AS own ON own.document_id = documents.rowid
WHERE documents MATCH ? AND documents.rowid < ?
  AND NOT EXISTS (SELECT 1 FROM revisions AS later
                  WHERE later.message_id = coalesce(own.message_id, documents.rowid)
                    AND later.document_id > documents.rowid)
ORDER BY documents.rowid DESC LIMIT ?

-- name: find_oldest
-- The same, the oldest documents first.
SELECT documents.rowid, coalesce(own.message_id, documents.rowid)
FROM documents LEFT JOIN revisions AS own ON own.document_id = documents.rowid
WHERE documents MATCH ? AND documents.rowid > ?
  AND NOT EXISTS (SELECT 1 FROM revisions AS later
                  WHERE later.message_id = coalesce(own.message_id, documents.rowid)
                    AND later.document_id > documents.rowid)
ORDER BY documents.rowid LIMIT ?

-- name: count_revisions
-- How many documents have been replaced, or belong to nothing any more.
SELECT count(*) FROM revisions

-- name: count_documents
-- How many there are, with these.
SELECT count(*) FROM documents_docsize

-- name: probe_document
-- Whether the newest document of a message is found by what is in it.
SELECT 1 FROM documents WHERE documents MATCH ? AND rowid = ?

-- name: newest_revision
-- The document that stands for a message, if it was changed.
SELECT max(document_id) FROM revisions WHERE message_id = ?

-- name: check_structure
-- Compare the index with itself.
INSERT INTO documents (documents) VALUES ('integrity-check')
