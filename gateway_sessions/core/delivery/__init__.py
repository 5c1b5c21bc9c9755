"""The way of a reply to people: outbound messages, cutting of long texts, retries of failed sends.

- ``adapter_capabilities``: The capabilities of an adapter: how it receives, what it can send, and what it
  can find out afterwards.
- ``message_parts``: The messages that a platform gets for one of ours: rendered, cut to its limit, marked
  as a repeat.
- ``outbound_messages``: Replies of agents, outbound messages and their targets.
- ``retry_policy``: The plan after a send that failed or may have failed: retry, resend marked as a repeat,
  or give up.
- ``schedules``: Schedules: what the gateway says or begins by itself, when, and what becomes of missed times.
- ``targets``: Names of targets: the words by which agents and programs say where an unprompted message
  goes.
- ``text_splitting``: Cutting of a text that exceeds a platform's limit at paragraphs, lines and words,
  code blocks intact.
"""
