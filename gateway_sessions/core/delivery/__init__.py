"""The way of a reply to people: outbound messages, cutting of long texts, retries of failed sends.

- ``outbound_messages``: Replies of agents, outbound messages, their targets, and the capabilities of a
  platform.
- ``retry_policy``: The plan after a send that failed or may have failed: retry, resend marked as a repeat,
  or give up.
- ``text_splitting``: Cutting of a text that exceeds a platform's limit at paragraphs, lines and words,
  code blocks intact.
"""
