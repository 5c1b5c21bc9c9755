"""Chat completions are the protocol that endpoints for models share; its rules here need no network.

- `request`: the body that asks a model.
- `response`: the reply in what an endpoint answers, event by event or in one piece.
- `failures`: the error that a refusal means, and when the model is asked again.
"""
