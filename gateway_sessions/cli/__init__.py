"""The command line: it parses what people type, works on a store, and shows what came of it.

- ``agent_loading``: Loading of the agent that `--agent` names.
- ``app``: The command line as a whole: options in front of all commands, and errors of the parser as exit
  codes.
- ``commands``: The commands: each module declares those of a group, and does their work.
- ``context``: One invocation of a command: where its store is, how it opens that, and how it answers.
- ``conversation``: One conversation at a terminal: the session that it goes on with, and what is shown
  before and after.
- ``declare``: The declaration of commands: a decorator, and the options that several commands share.
- ``demo``: The story that `gateway-sessions demo` plays, with real stores, gateways and processes.
- ``demo_agent``: An agent without a model: it shows that a session remembers.
- ``exit_codes``: The exit codes, and the advice for each error.
- ``interrupts``: Ctrl-C in a conversation: the first one ends the turn that runs, the next one leaves.
- ``lookup``: The session, the lane or the person that somebody means by a text.
- ``output``: What people and programs see: JSON, tables, pages and live views.
- ``picker``: The list at which a person chooses a conversation.
- ``service``: A gateway as a service: its adapters, its health endpoint, its addresses and its end.
- ``settings``: The options in front of all commands, and the names of the program.
"""
