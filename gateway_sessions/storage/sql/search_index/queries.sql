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

-- name: check_parts
-- The same for the parts of words.
INSERT INTO parts (parts) VALUES ('integrity-check')

-- name: last_word
-- The word that was listed last.
SELECT coalesce(max(word_id), 0) FROM words

-- name: add_words
-- List these words, if they are not listed yet.
INSERT INTO words (word) SELECT value FROM json_each(?) WHERE true ON CONFLICT (word) DO NOTHING

-- name: add_parts
-- Take apart the words that were listed after that one.
INSERT INTO parts (rowid, word) SELECT word_id, word FROM words WHERE word_id > ?

-- name: words_with_parts
-- Words with these parts and, a space being put behind them, with that text.
SELECT words.word FROM parts JOIN words ON words.word_id = parts.rowid
WHERE parts MATCH ? AND instr(words.word || ' ', ?) LIMIT ?

-- name: words_with
-- The same, looking at every word.
SELECT word FROM words WHERE instr(word || ' ', ?) LIMIT ?

-- name: probe_word
-- Whether a word is found by its parts.
SELECT 1 FROM parts JOIN words ON words.word_id = parts.rowid WHERE parts MATCH ? AND words.word = ?
