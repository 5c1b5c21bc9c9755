"""The interface between a gateway and agents: protocols, the context of a turn, warm agents, tools.

- ``cache``: The cache of warm agents: lent to turns, evicted by count, weight or age, each closed exactly
  once.
- ``protocol``: `Agent` and its optional abilities, plain functions as agents, and the call that runs a
  turn.
- ``search_tool``: `SessionSearch`: the tool by which an agent searches earlier conversations.
- ``turn_context``: `TurnContext`: what an agent reads of its turn, and how it speaks, streams and reports
  use.
"""
