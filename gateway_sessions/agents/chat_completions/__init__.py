"""The protocol of chat completions, as far as it needs no network.

- `request`: the body that asks a model.
- `response`: the reply in what an endpoint answers, event by event or in one piece.
- `failures`: the error that an answer without a reply means, and when to ask again.
"""
