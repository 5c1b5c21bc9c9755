"""The protocol of chat completions, which most endpoints for models share, without the network.

- ``failures``: `Refusal`: the refusal of an endpoint as an error with advice, and the rule for asking
  again.
- ``request``: The body of a request for chat completions.
- ``response``: `Answer`: the reply of a model, which comes in events or in one piece, with the tokens that
  it took.
- ``tool_calls``: `CallCollector`: the calls of tools in an answer, which come in pieces or as a whole.
"""
