-- What messages are found by: their tokens, without which a message is looked at itself. See decision 24.

ALTER TABLE messages ADD COLUMN tokens tsvector;

-- What waits to be taken into the index is scanned by every search, so it is kept short.
CREATE INDEX messages_by_tokens ON messages USING gin (tokens) WITH (gin_pending_list_limit = 1024);

-- Messages of earlier versions have none; they get theirs behind the backs of those who write.
CREATE INDEX messages_without_tokens ON messages (message_id) WHERE tokens IS NULL;
