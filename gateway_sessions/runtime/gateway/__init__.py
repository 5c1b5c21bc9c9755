"""`Gateway` and its parts: scheduling, running, streaming and stopping turns, and slash commands.

- ``assembly``: The assembly of a gateway: it makes all parts in one place, each before those that are
  given it.
- ``budget_gate``: The gate that asks before each turn whether its budgets allow it, and warns people.
- ``commands``: The built-in slash commands, grouped by what they change.
- ``connections``: Connections of adapters, made again after failures, and the adapter of each account.
- ``execution``: The execution of one turn: lend the agent, run it, and commit its messages, use and
  replies at once.
- ``farewell``: The last call to an agent whose session ended by itself, so that it can save what it needs.
- ``gateway``: `Gateway`: takes messages from adapters, runs an agent for each turn, and sends replies.
- ``gateway_listener``: `GatewayListener`: passes news of the queue and of other nodes on to the lanes,
  turns and deliveries.
- ``intake``: `MessageIntake`: takes messages in, past the observers, to a slash command, an edit or the
  queue.
- ``observers``: Observers of the embedding program: asked before a message and a turn, called after a
  turn.
- ``runner``: The tasks that run turns one after another on each lane, and log the failures of turns.
- ``running_turn``: `RunningTurn`: a turn that runs in this process, may be stopped once, and takes
  messages while it runs.
- ``scheduler``: The scheduler of turns: one at a time on a lane, limits by owner and in all, first come
  first served.
- ``streaming``: Growing replies on platforms that allow edits: throttled updates, and what follows a
  crash.
- ``turn_signals``: Signals to a running turn in this process or on another node: interrupt, roll back,
  steer.
- ``unprompted``: What a gateway does without a message of a person: it says something, begins turns by
  itself, or asks.
- ``watchdog``: The duty that stops turns past their deadline or without progress, and shows the typing
  indicator.
"""
