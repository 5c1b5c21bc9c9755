"""The asyncio side: it carries out what `core` decides, on a store that `storage` keeps.

- ``agents``: The interface between a gateway and agents: protocols, the context of a turn, warm agents,
  tools.
- ``alarm``: `Alarm`: a task waits on it until it is rung or a time comes, even after the clock was set
  back.
- ``argument_checks``: Checks of arguments from untyped callers: each error says what was given and what
  is needed.
- ``context``: `StoreContext`: the database, clock, policies and random ids that all parts of an open
  store share.
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
- ``open_calls``: `OpenCalls`: counts the running calls of a resource, so that closing waits for them and
  refuses more.
- ``operator``: Tools for operators of a store that another process owns: a client, health checks, an
  overview.
- ``queue``: The queue of an open store: admission of messages, routing to sessions, and turns.
- ``session_context``: The builder of the `SessionContext` that an agent is given for its session.
- ``store``: `SessionStore`, the object that a program embeds, and the parts of its public interface.
- ``user_code``: Calls of foreign code in a fresh context and within a time limit; tasks that do not end
  are abandoned.
"""
