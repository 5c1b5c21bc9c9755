"""Use of models: events, exact sums of tokens and costs, budgets and the insights report.

- ``budgets``: Budgets for a session, a person's day and everybody's day: how much is used up, and whether
  to stop.
- ``insights``: The insights report: sums by platform, model, tool and hour, computed from counts.
- ``usage_events``: `Usage`: one use of a model as a checked event, and sums that keep unknown prices apart
  from zero.
"""
