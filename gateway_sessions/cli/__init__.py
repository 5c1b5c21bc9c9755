"""The command line: it parses what people type, works on a store, and shows the result.

- ``adapter_health``: Health checks of the adapters that a configuration asks for, for `doctor`.
- ``agent_loading``: Loading of the agent that `--agent` names.
- ``app``: The whole command line: the options for all commands, and exit codes for errors of the parser.
- ``commands``: The commands: each module declares the commands of one group, and does their work.
- ``context``: One invocation of a command: its store, its configuration, and its answer.
- ``conversation``: A conversation at a terminal: the session that it continues, the recap before it, and
  the hint after it.
- ``conversation_ctrl_c``: Ctrl-C in a conversation: the first one ends the turn that runs, the next one
  leaves.
- ``declare``: The declaration of commands: a decorator, and the options that several commands share.
- ``demo``: The story that `gateway-sessions demo` plays, with real stores, gateways and processes.
- ``demo_agent``: An agent without a model: it shows that a session remembers.
- ``exit_codes``: The exit codes, and the advice for each error.
- ``fakes``: Fakes of platforms at the terminal: what is typed, people do; what the bot says is shown.
- ``first_setup``: The first setup of a gateway: its configuration, its secrets, a unit for systemd, and a
  first look.
- ``lookup``: Lookup of the session, lane or owner that a typed text means.
- ``output``: The output for people and programs: JSON, tables, pages and live views.
- ``picker``: The list at which a person chooses a conversation.
- ``served_addresses``: The addresses of a served gateway: health, the signed webhook, and the port that
  platforms call.
- ``served_gateway``: `ServedGateway`: the gateway of `serve`, with its adapters, its health endpoint and
  its log.
- ``settings``: The options in front of all commands, and the names of the program.
"""
