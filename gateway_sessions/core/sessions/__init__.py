"""The life of a session: its entry and record, its states, reset policies, titles, lineage and removal.

- ``agent_validity``: The test whether a warm agent may answer a turn: same session, transcript version and
  settings.
- ``busy_mode``: `BusyMode`: what a message does to a lane on which a turn runs.
- ``entry``: `SessionEntry`: the record of a lane's current session, its state, and checks of its fields.
- ``erasure``: Values of an erasure: its subject, the tombstone that stays, and the receipt of what was
  done.
- ``lineage``: Ancestry of sessions as functions over parent links: roots, chains, tips and families.
- ``policy_rules``: The reset policies of a configuration, and the choice which one applies to a
  conversation.
- ``reasons``: `EndReason`: why a session ended, as rows, the transition log and notices say it.
- ``record``: A session as the database stores it (`SessionRecord`) and as a list shows it
  (`SessionSummary`).
- ``recovery``: Decisions after an unclean end: which cut-off sessions resume, which are suspended, when to
  wait.
- ``reset_policy``: Reset policies: when a session is due for a reset, and what defers a reset that is due.
- ``reset_times``: Daily and cron boundaries as instants, across daylight saving time and skipped dates.
- ``retention``: The plan of a prune: which sessions are too old or too many, the oldest first.
- ``simulation``: The resets that another policy would have made on a lane, computed from when people wrote.
- ``state_machine``: The state machine of a session as a table, and the plan of what a message or the
  watcher does to it.
- ``titles``: Titles of sessions: how they are cleaned, numbered along a lineage, and derived from a first
  message.
"""
