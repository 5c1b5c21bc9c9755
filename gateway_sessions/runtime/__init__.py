"""The asyncio side: it carries out what `core` decides, on a store that `storage` keeps.

- ``agents``: The interface between a gateway and agents: protocols, the context of a turn, warm agents,
  tools.
- ``alarm``: `Alarm`: a task waits on it until it is rung or a time comes, even after the clock was set
  back.
- ``context``: `StoreContext`: the database, clock, policies and random ids that all parts of an open store
  share.
- ``delivery``: Sending of replies and notices: order on each lane, retries, marks after sending, pauses.
- ``duties``: Background work of a store: each duty is a `sweep()` that tests call and a `run()` that
  repeats it.
- ``duty``: The loop of a duty: it runs a sweep, rests, and sweeps again until the store stops.
- ``gateway``: `Gateway` and its parts: scheduling, running, streaming and stopping turns, and slash
  commands.
- ``keyed_locks``: `KeyedLocks`: one asyncio lock for each key, in order of arrival, without memory for
  unused keys.
- ``observability``: Events, incidents and explanations: what a store and its gateway report about
  themselves.
- ``operator``: Tools for operators of a store that another process owns: a client, health checks, an
  overview.
- ``queue``: The queue of an open store: admission of messages, routing to sessions, and turns.
- ``session_prompt``: The prompt of a session: the context that an agent is given, and the note of the
  prompt it began with.
- ``store``: `SessionStore`, the object that a program embeds, and the parts of its public interface.
- ``user_code``: User code: checks of what a program hands over, and calls of it in a fresh context and in
  time.
"""
