-- Of a row that several messages of a platform became, what each of them said: so that one can be changed alone.

ALTER TABLE messages ADD COLUMN platform_messages text COLLATE "C";
CREATE INDEX messages_of_several ON messages (session_id) WHERE platform_messages IS NOT NULL;

-- Rows that earlier versions wrote name their messages and do not tell them apart.
UPDATE messages SET platform_messages = '[]' WHERE extra LIKE '%"platform_message_ids":[%';
UPDATE totals SET text_bytes = text_bytes + 2 * (SELECT count(*) FROM messages
        WHERE messages.session_id = totals.session_id AND platform_messages IS NOT NULL)
WHERE session_id IN (SELECT session_id FROM messages WHERE platform_messages IS NOT NULL);

-- How often anything in a session was edited or deleted where it was said.
ALTER TABLE totals ADD COLUMN edit_count bigint NOT NULL DEFAULT 0;

-- Who said what: a message keeps its author and its lane, wherever its session goes. A row without an author, as all
-- rows of earlier versions are, belongs to the owner of its session.

ALTER TABLE messages ADD COLUMN author text COLLATE "C";
ALTER TABLE messages ADD COLUMN from_lane text COLLATE "C";
-- Of a summary of what several people said: who they are, as JSON.
ALTER TABLE messages ADD COLUMN people text COLLATE "C";
-- Whose session it was when it got its title.
ALTER TABLE sessions ADD COLUMN title_owner text COLLATE "C";

CREATE INDEX messages_by_author ON messages (author) WHERE author IS NOT NULL;
CREATE INDEX messages_of_people ON messages (message_id) WHERE people IS NOT NULL;

UPDATE sessions SET title_owner = owner WHERE title IS NOT NULL;

-- Sessions that went from a person's direct chat to somebody else before messages had authors: what was said until then
-- is that person's. It is certain where the session was on two lanes only, and tells who began it.
UPDATE messages SET
    author = (SELECT split_part(s.owner, ':', 1) || ':' || s.source || ':user:' || replace(replace(s.user_id, '%', '%25'), ':', '%3A') FROM sessions AS s WHERE s.session_id = messages.session_id),
    from_lane = (SELECT min(t.session_key) FROM transitions AS t JOIN sessions AS s ON s.session_id = t.session_id
        WHERE t.session_id = messages.session_id AND t.session_key <> s.session_key)
WHERE session_id IN (SELECT s.session_id FROM sessions AS s
        WHERE s.user_id IS NOT NULL AND s.session_key IS NOT NULL AND s.source <> 'whatsapp' AND s.owner <> split_part(s.owner, ':', 1) || ':' || s.source || ':user:' || replace(replace(s.user_id, '%', '%25'), ':', '%3A')
            AND (SELECT count(DISTINCT t.session_key) FROM transitions AS t WHERE t.session_id = s.session_id) = 2
            AND EXISTS (SELECT 1 FROM transitions AS t WHERE t.session_id = s.session_id
                AND t.session_key <> s.session_key AND t.session_key LIKE 'agent:%:' || s.source || ':dm:%'))
    AND sent_at < (SELECT min(t.at) FROM transitions AS t JOIN sessions AS s ON s.session_id = t.session_id
        WHERE t.session_id = messages.session_id AND t.session_key = s.session_key);

-- Work of sub-agents belongs to those for whom it was done. Twice, for sub-agents have some of their own.
UPDATE sessions SET owner = (SELECT p.owner FROM sessions AS p WHERE p.session_id = sessions.parent_session_id)
WHERE relation = 'delegate' AND session_key IS NULL AND user_id IS NULL AND title IS NULL
    AND EXISTS (SELECT 1 FROM sessions AS p WHERE p.session_id = sessions.parent_session_id);
UPDATE sessions SET owner = (SELECT p.owner FROM sessions AS p WHERE p.session_id = sessions.parent_session_id)
WHERE relation = 'delegate' AND session_key IS NULL AND user_id IS NULL AND title IS NULL
    AND EXISTS (SELECT 1 FROM sessions AS p WHERE p.session_id = sessions.parent_session_id);

-- What was said into a turn while that ran is marked with the token of the turn: of a later turn such a mark says nothing.
ALTER TABLE inbox ADD COLUMN steered_into bigint;

-- How often the turn that a message leads was cut off, while another turn is next: what is next is counted by its lane.
ALTER TABLE inbox ADD COLUMN tries bigint NOT NULL DEFAULT 0;

-- Of a turn whose answer has grown before people's eyes: which message of the platform it grows in, as JSON.
ALTER TABLE inbox ADD COLUMN growing text COLLATE "C";
