-- fragment: entry
-- A lane's entry with its clocks.
entries.entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record,
    version, updated_at, last_interaction_at

-- fragment: message
-- A message as pages read it. All short members come as one value, because each value of a row takes time; so do the
-- members that few messages have, if one of them is set.
message_id, sent_at, {json_text:{json_array}(session_id, seq, role, tool_call_id, tool_name, effect_disposition,
        finish_reason, platform_message_id, token_count, {as_text:author}, {as_text:from_lane},
        {json:CASE WHEN observed = 1 OR edited_at IS NOT NULL OR coalesce(parts, reasoning_details, codex_reasoning_items,
        codex_message_items, api_content, extra, platform_messages, hidden_because, people) IS NOT NULL
        THEN {json_array}(observed, {flag:parts IS NOT NULL}, reasoning_details, codex_reasoning_items, codex_message_items,
        api_content, extra, platform_messages, hidden_because, edited_at, people) END})} AS brief,
    coalesce(parts, content) AS content, tool_calls, reasoning, reasoning_content

-- fragment: part_of_conversation
-- The members of a message that a model is given.
message_id, sent_at, {json_text:{json_array}(role, tool_call_id, tool_name, effect_disposition, finish_reason,
        platform_message_id, {json:CASE WHEN observed = 1 OR coalesce(parts, reasoning_details, codex_reasoning_items,
        codex_message_items, api_content, extra) IS NOT NULL
        THEN {json_array}(observed, {flag:parts IS NOT NULL}, reasoning_details, codex_reasoning_items, codex_message_items,
        api_content, extra) END})} AS brief,
    coalesce(parts, content) AS content, tool_calls, reasoning, reasoning_content

-- fragment: owed_reply
-- The next reply of each lane on an account, if it is due, except some replies.
reply_id, session_key, session_id, seq, owner, platform, account, target, content, attempts, unclear, created_at,
    next_try_at AS due_at, NULL AS problem, CASE WHEN state = 'sending' THEN epoch END AS sent_by
FROM outbox AS reply
WHERE platform = ? AND account = ? AND state IN ('owed', 'sending') AND next_try_at <= ?
  AND reply_id NOT IN ({each_number_of})
  AND NOT EXISTS (SELECT 1 FROM outbox AS earlier WHERE earlier.session_key = reply.session_key
      AND earlier.reply_id < reply.reply_id AND earlier.state IN ('owed', 'sending'))

-- fragment: number_of_calls
-- The number of tools that a message calls.
coalesce({length_of_list:tool_calls}, 0)

-- fragment: candidate
-- A message that a search may find, with the columns that decide about it.
m.message_id, m.session_id, m.role, m.content, m.tool_name, m.tool_calls, m.sent_at, s.owner, s.session_key,
    s.source, m.hidden_because, s.relation, m.author, m.from_lane
FROM messages AS m JOIN sessions AS s ON s.session_id = m.session_id

-- fragment: listed
-- A session as lists show it.
s.session_id, s.source, s.title, coalesce(t.preview, '') AS preview, t.last_active, s.started_at, s.owner, s.session_key,
    s.user_id, s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd

-- fragment: in_sight
-- Whether the caller may see a session.
({a_number} = 1 OR @.owner IN ({each_of}) OR @.session_key = ?)

-- fragment: looked_for
-- Whether a session matches the filters, and has the text if one is given.
({a_text} IS NULL OR s.source = ?) AND s.source NOT IN ({each_of}) AND ({a_number} IS NULL OR s.archived = ?)
    AND t.message_count >= ? AND ({a_number} = 0
      OR {says:t.preview} OR {says:t.preview} OR {says:t.preview}
      OR {says:s.title} OR {says:s.title} OR {says:s.title}
      OR {says:s.session_id} OR {says:s.source})

-- fragment: latest_in_sight
-- Those of them that nothing in sight continues, the latest active first, after a position.
(t.last_active, t.session_id) < (?, ?)
  AND coalesce(s.relation, '') <> 'delegate'
  AND {in_sight:s}
  AND ({a_number} = 1 OR s.end_reason IS NULL OR s.end_reason <> 'compression' OR NOT EXISTS (
    SELECT 1 FROM sessions AS next {by_parent} WHERE next.parent_session_id = s.session_id AND next.relation = 'continuation'
      AND {in_sight:next}))
  AND {looked_for}
ORDER BY t.last_active DESC, t.session_id DESC LIMIT ?

-- fragment: of_few
-- Sessions of a few owners or of one lane.
session_id IN ({several:
        SELECT session_id FROM sessions WHERE owner IN ({each_of})
        UNION SELECT session_id FROM sessions WHERE session_key = ?})

-- fragment: in_use
-- How many sessions, how many of them began since, and how long they were in use since.
count(*) AS sessions, {sum:{flag:started_at >= ?}} AS begun,
    {sum:CASE WHEN started_at > ? THEN CASE WHEN last_active > started_at THEN last_active - started_at ELSE 0 END
        ELSE last_active - ? END} AS micros

-- fragment: whole_session
-- The columns by which a session may stand out.
session_id, source, title, started_at, last_active - started_at AS micros, message_count, tool_call_count,
        input_tokens + output_tokens + cache_read_tokens + cache_write_tokens AS tokens

-- fragment: that_stand_out
-- The first few sessions by each of these columns.
SELECT * FROM (SELECT 'longest' AS ranking, session_id, source, title, started_at, micros AS amount FROM shown
    WHERE micros > 0 ORDER BY micros DESC, session_id LIMIT ?) AS longest
UNION ALL SELECT * FROM (SELECT 'most_messages', session_id, source, title, started_at, message_count FROM shown
    WHERE message_count > 0 ORDER BY message_count DESC, session_id LIMIT ?) AS most_messages
UNION ALL SELECT * FROM (SELECT 'most_tokens', session_id, source, title, started_at, tokens FROM shown
    WHERE tokens > 0 ORDER BY tokens DESC, session_id LIMIT ?) AS most_tokens
UNION ALL SELECT * FROM (SELECT 'most_tool_calls', session_id, source, title, started_at, tool_call_count FROM shown
    WHERE tool_call_count > 0 ORDER BY tool_call_count DESC, session_id LIMIT ?) AS most_tool_calls

-- fragment: used
-- The use of models, the number of calls, and the costs in billionths.
count(*) AS events, {sum:api_calls} AS api_calls, {sum:input_tokens} AS input_tokens, {sum:output_tokens} AS output_tokens,
    {sum:cache_read_tokens} AS cache_read_tokens, {sum:cache_write_tokens} AS cache_write_tokens,
    {sum:reasoning_tokens} AS reasoning_tokens,
    {sum:{rounded:1e9 * CASE cost_status WHEN 'actual' THEN actual_cost_usd WHEN 'estimated' THEN estimated_cost_usd
        ELSE 0 END}} AS cost_nanos,
    count(CASE WHEN cost_status = 'unknown' THEN 1 END) AS unknown,
    count(CASE WHEN cost_status = 'estimated' THEN 1 END) AS estimated,
    count(CASE WHEN cost_status = 'actual' THEN 1 END) AS actual,
    count(CASE WHEN cost_status = 'included' THEN 1 END) AS included

-- fragment: what_it_holds
-- The size of a session, and whether it is in use or kept.
t.session_id, t.last_active, t.last_seq, t.text_bytes,
    {flag:s.pinned = 1 OR EXISTS (SELECT 1 FROM entries WHERE entries.session_id = s.session_id) OR EXISTS (
        SELECT 1 FROM hook_calls WHERE idempotency_key > {joined:s.session_id {with} ':'}
            AND idempotency_key < {joined:s.session_id {with} ':~'}
            AND hook_calls.session_id = s.session_id AND state = 'owed')} AS is_kept

-- fragment: to_prune
-- The conditions under which a session may be pruned.
({a_text} IS NULL OR s.source = ?) AND ({a_text} IS NULL OR s.relation = ?)
    AND ({a_number} = 1 OR s.archived = 0) AND ({a_number} = 0 OR t.last_seq = 0)
    AND ({a_number} = 1 OR s.ended_at IS NOT NULL)

-- fragment: sent_to_room
-- Whether a person sent a message to a room, at their account of the platform.
sender = ? AND substr(owner, 1, {length}({a_text})) = ? AND substr(owner, 1, {length}({a_text})) <> ?

-- fragment: on_lanes_of_person
-- Whether a row is a person's: by its owner, by its lane, or sent by them to a room.
(owner = ? OR session_key IN ({each_of}) OR ({sent_to_room}))

-- fragment: turn_that_waits
-- The message that leads a turn which waits on a lane, or a command that is being carried out there.
session_key = ? AND outcome IS NULL AND token IS NULL AND merged_into IS NULL

-- fragment: waits_for_its_turn
-- Whether a message leads a waiting turn, or has joined one.
outcome IS NULL AND token IS NULL AND kind IN ('message', 'internal')

-- fragment: was_steered
-- Whether a message of a running turn was steered into it. Programs of schema 6 know that by `messages` alone.
coalesce(steered_into, 0) = token OR messages = 0
