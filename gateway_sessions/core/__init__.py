"""Decisions as pure functions over values: no I/O, no clock, no randomness, no tasks.

- ``checks``: Checks of the types and ranges of values that callers and configurations give.
- ``cluster``: Rules for several nodes on one database: who is alive, who leads, and which node serves a
  lane.
- ``committed_changes``: Records of what a transaction changed (`Transition`, `SessionEnd`), passed on after
  its commit.
- ``control_protocol``: The frames and messages that a store's owner and its clients exchange over the
  control socket.
- ``damaged_json``: A JSON parser for files that may be damaged: it splits an object into members before it
  reads them.
- ``delivery``: The way of a reply to people: outbound messages, cutting of long texts, retries of failed
  sends.
- ``display_text``: Displayed text: names of strangers, bounded and unable to pose as something else, and
  masked addresses.
- ``export``: Sessions as files: JSON Lines that can be imported again, Markdown and HTML for people.
- ``identity``: Identities: sources of messages, session keys, owners, scopes, pseudonyms and named
  accounts.
- ``instants``: Conversions between aware UTC datetimes and whole microseconds, and checks of durations and
  instants.
- ``markdown``: Markdown in the markup of each platform, cut into messages that fit.
- ``notices``: Texts that people and agents get from the gateway itself, and the wording of times and sizes.
- ``process_load``: The counts that `gsess top` and the health page show of a process: agents, turns, loop
  lag.
- ``progress``: The progress of a long piece of work, in units that a person can follow.
- ``queue``: The way of a message to its turn: inbound messages, receipts, busy modes, commands, the state
  machine.
- ``search``: The rules of search, the same for every database: tokens, queries, filters, ranking and
  snippets.
- ``sessions``: The life of a session: its entry and record, its states, reset policies, titles, lineage and
  removal.
- ``sessions_json``: The format of sessions.json, the snapshot of all current entries, which Hermes can read
  as well.
- ``storable_text``: Storable text: characters that no database takes are replaced, and values that would
  change are refused.
- ``text_length``: The length of a text in a platform's unit, and the places where a cut tears no visible
  character.
- ``transcript``: Messages of a session as values, and what of them a model or a person gets to read.
- ``usage``: Use of models: events, exact sums of tokens and costs, budgets and the insights report.
"""
