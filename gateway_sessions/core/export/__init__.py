"""Sessions as files: JSON Lines that can be imported again, Markdown and HTML for people.

- ``formats``: The choice of an export format by name, and the rendering of a bundle in it.
- ``html``: Sessions as one HTML page with its style sheet, without scripts and external addresses.
- ``jsonl``: The writer of sessions as JSON Lines, and the members that each exported session has.
- ``markdown``: Sessions as Markdown in which nothing that was said can pose as a heading of ours.
- ``reading``: The reader of exported sessions: each member of an untrusted JSON object is checked or
  refused.
- ``reports``: Reports of exports and imports: how many sessions and messages, and what an import found.
- ``wording``: Contents of the HTML and Markdown exports: speakers, times, tool calls and attachments as
  text.
"""
