"""Transactions on lanes and their sessions: find, replace, change, split, title, expire, remove.

- ``account_lanes``: Give a lane from before named accounts to the account that used it, with its queue and
  replies.
- ``expire``: Expire due sessions, reschedule policies, prune lanes, and mark recent sessions, page by page.
- ``find_or_create``: Find the session of a message, keep it or replace it, or begin the first one, in one
  transaction.
- ``hooks``: Hook calls that are owed: claimed with a counted attempt, then done, retried or given up.
- ``lane_changes``: Changes of a lane on request: reset, undo, switch, suspend, mark for resume, configure.
- ``lists``: Lists of sessions, entries, transitions and active lanes, page by page and within a scope.
- ``remove``: Remove sessions: choose those to prune, then delete their rows piece by piece.
- ``session_rows``: The rows of sessions: create, read, end and reopen one, and change its columns.
- ``session_transitions``: Steps that every change of a lane shares: begin, end or succeed a session, and
  log the transition.
- ``split``: Create a session from another one: the continuation of a compressed session, or a branch.
- ``switch_lane``: Switch a lane to a related session: its continuation, a branch of it, or a resumed one.
- ``titles``: Set titles, keep them unique for each owner, and find the session that a title or id prefix
  means.
"""
