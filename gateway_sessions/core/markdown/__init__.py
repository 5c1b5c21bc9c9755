"""Markdown in the markup of each platform, cut into messages that fit.

- ``dialect``: What a platform's markup looks like: marks around text, the escapes, and the platform's
  limits.
- ``dialects``: The markup of each platform, as its documentation describes it, and its limits.
- ``document``: A text in Markdown as a tree: blocks, and within them runs of text.
- ``document_to_pieces``: Layout of a document in the markup of a platform, as pieces that can be cut into
  messages.
- ``packing``: Packing of pieces into messages within a platform's limit: what is cut is closed, and opened
  again behind.
- ``parser``: Parsing of Markdown (CommonMark with tables, strikethrough and lists of tasks) into a
  document.
- ``pieces``: The pieces of a rendered text in order: words, marks that open and close, and places for cuts.
- ``rendering``: Rendering of a text in Markdown for a platform: parsed once, laid out in its markup, cut
  into messages.
"""

# A dialect brings the renderer along: the event loop must not stand still while a message waits for it.
# Programs without a dialect load neither the renderer nor the parser behind it.
from gateway_sessions.core.markdown import rendering as rendering
