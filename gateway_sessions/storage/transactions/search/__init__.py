"""Transactions of a search: work for the search index, scans of messages, and hits.

- ``hits``: Order the candidates of a search and load the hits of one page with title, snippet and context.
- ``scan``: Scan messages that the search index does not cover, and check candidates against the scope.
- ``stemming``: The stemming language of a store, which all its nodes share and which changes with one node
  only.
"""
