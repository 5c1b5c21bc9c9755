"""Chat completions are the protocol that endpoints for models share; its rules here need no network.

- ``failures``: A refusal of an endpoint becomes one error, whose line says what can be done, or the model
  is asked again.
- ``request``: The agent asks an endpoint for chat completions with the body that is built here.
- ``response``: An endpoint answers with a reply that grows event by event, or comes in one piece, and tells
  what it took.
"""
