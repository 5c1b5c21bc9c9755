"""Sessions as files: JSON Lines that can be imported again, Markdown and HTML for people.

- ``formats``: The formats of an export by name, and the JSON Lines that an import reads: one line for each
  session.
- ``html``: Sessions as one HTML page with its style sheet, without scripts and external addresses.
- ``markdown``: Sessions as Markdown in which nothing that was said can pose as a heading of ours.
- ``page_texts``: Contents of the HTML and Markdown exports: speakers, times, tool calls and attachments as
  text.
- ``session_members``: The members that each exported session, message and use has, and their order.
- ``session_reader``: The reader of exported sessions: each member of an untrusted JSON object is checked or
  refused.
- ``transfer_reports``: Reports of exports and imports: how many sessions and messages, and what an import
  found.
"""
