-- A search index: made from the messages of a store, and from nothing else. Losing it costs time.

CREATE TABLE state (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- Texts come as tokens between spaces; nothing of them is kept but where they occur. A document's row id is the id of
-- its message, or, for one that was changed after it had been indexed, the id of that change. One character alone is
-- the beginning of many tokens, all of which would have to be gone through: so beginnings of that length are indexed.
CREATE VIRTUAL TABLE documents USING fts5 (labels, text, content = '', tokenize = 'ascii', prefix = '1');

-- Of the documents of one message the one with the highest id counts. There is none if the message was removed.
CREATE TABLE revisions (
    document_id INTEGER PRIMARY KEY,
    message_id  INTEGER NOT NULL
) STRICT;

CREATE INDEX revisions_of_message ON revisions (message_id, document_id);

-- Every word of the documents once, for those who look for a part of one.
CREATE TABLE words (
    word_id INTEGER PRIMARY KEY,
    word    TEXT NOT NULL UNIQUE
) STRICT;

-- Which words have which three letters in a row.
CREATE VIRTUAL TABLE parts USING fts5 (
    word, content = '', columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 1'
);
