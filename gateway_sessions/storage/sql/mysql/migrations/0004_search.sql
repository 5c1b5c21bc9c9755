-- What messages are found by: their tokens, without which a message is looked at itself. Spelled so that no minimum
-- length, list of stop words or collation matters, with nothing but letters, digits and underscores.

ALTER TABLE messages ADD COLUMN tokens LONGTEXT CHARACTER SET ascii COLLATE ascii_bin;

CREATE FULLTEXT INDEX messages_by_tokens ON messages (tokens);

-- Messages of earlier versions have none; they get theirs behind the backs of those who write.
CREATE INDEX messages_without_tokens ON messages (tokens (1), message_id);

-- Locks for one more kind of names.
INSERT INTO locks (lock_id)
WITH RECURSIVE digits (digit) AS (SELECT 0 UNION ALL SELECT digit + 1 FROM digits WHERE digit < 31)
SELECT 3073 + a.digit * 32 + b.digit FROM digits AS a, digits AS b;
