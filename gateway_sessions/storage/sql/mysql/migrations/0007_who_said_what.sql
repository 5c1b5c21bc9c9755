-- Of a row that several messages of a platform became, what each of them said: so that one can be changed alone.

ALTER TABLE messages ADD COLUMN platform_messages LONGTEXT;
CREATE INDEX messages_of_several ON messages (session_id, platform_messages(1));

-- Rows that earlier versions wrote name their messages and do not tell them apart.
UPDATE messages SET platform_messages = '[]' WHERE extra LIKE '%"platform_message_ids":[%';
UPDATE totals SET text_bytes = text_bytes + 2 * (SELECT count(*) FROM messages
        WHERE messages.session_id = totals.session_id AND platform_messages IS NOT NULL)
WHERE session_id IN (SELECT session_id FROM messages WHERE platform_messages IS NOT NULL);

-- How often anything in a session was edited or deleted where it was said.
ALTER TABLE totals ADD COLUMN edit_count BIGINT NOT NULL DEFAULT 0;

-- Who said what: a message keeps its author and its lane, wherever its session goes. A row without an author, as all
-- rows of earlier versions are, belongs to the owner of its session.

-- Of a summary of what several people said, `people` holds who they are, as JSON.
ALTER TABLE messages
    ADD COLUMN author VARBINARY(2560),
    ADD COLUMN from_lane VARBINARY(2560),
    ADD COLUMN people LONGTEXT;

-- Whose session it was when it got its title.
ALTER TABLE sessions ADD COLUMN title_owner VARBINARY(2560);

CREATE INDEX messages_by_author ON messages (author(255));
CREATE INDEX messages_of_people ON messages (people(16));

UPDATE sessions SET title_owner = owner WHERE title IS NOT NULL;

-- Sessions that went from a person's direct chat to somebody else before messages had authors: what was said until then
-- is that person's. It is certain where the session was on two lanes only, and tells who began it.
UPDATE messages SET
    author = (SELECT concat(substring_index(s.owner, ':', 1), ':', s.source, ':user:', replace(replace(s.user_id, '%', '%25'), ':', '%3A')) FROM sessions AS s WHERE s.session_id = messages.session_id),
    from_lane = (SELECT min(t.session_key) FROM transitions AS t JOIN sessions AS s ON s.session_id = t.session_id
        WHERE t.session_id = messages.session_id AND t.session_key <> s.session_key)
WHERE session_id IN (SELECT s.session_id FROM sessions AS s
        WHERE s.user_id IS NOT NULL AND s.session_key IS NOT NULL AND s.source <> 'whatsapp' AND s.owner <> concat(substring_index(s.owner, ':', 1), ':', s.source, ':user:', replace(replace(s.user_id, '%', '%25'), ':', '%3A'))
            AND (SELECT count(DISTINCT t.session_key) FROM transitions AS t WHERE t.session_id = s.session_id) = 2
            AND EXISTS (SELECT 1 FROM transitions AS t WHERE t.session_id = s.session_id
                AND t.session_key <> s.session_key AND t.session_key LIKE concat('agent:%:', s.source, ':dm:%')))
    AND sent_at < (SELECT min(t.at) FROM transitions AS t JOIN sessions AS s ON s.session_id = t.session_id
        WHERE t.session_id = messages.session_id AND t.session_key = s.session_key);

-- Work of sub-agents belongs to those for whom it was done. Twice, for sub-agents have some of their own.
UPDATE sessions AS s JOIN sessions AS p ON p.session_id = s.parent_session_id SET s.owner = p.owner
WHERE s.relation = 'delegate' AND s.session_key IS NULL AND s.user_id IS NULL AND s.title IS NULL;
UPDATE sessions AS s JOIN sessions AS p ON p.session_id = s.parent_session_id SET s.owner = p.owner
WHERE s.relation = 'delegate' AND s.session_key IS NULL AND s.user_id IS NULL AND s.title IS NULL;

-- What was said into a turn while that ran is marked with the token of the turn: of a later turn such a mark says nothing.
ALTER TABLE inbox ADD COLUMN steered_into BIGINT;

-- How often the turn that a message leads was cut off, while another turn is next: what is next is counted by its lane.
ALTER TABLE inbox ADD COLUMN tries BIGINT NOT NULL DEFAULT 0;

-- Of a turn whose answer has grown before people's eyes: which message of the platform it grows in, as JSON.
ALTER TABLE inbox ADD COLUMN growing LONGTEXT;
