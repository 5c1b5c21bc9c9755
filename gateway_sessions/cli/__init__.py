"""The command line: it parses what people type, works on a store, and shows what came of it.

- ``app``: all commands as one program, and the errors of its parser as exit codes.
- ``commands``: the commands, each declared in one function that does its work.
- ``declare``: the decorator that makes a command of a function, and options that several commands share.
- ``context``: one command while it runs: where its store is, how it opens that, and how it answers.
- ``lookup``: the session, the lane or the person that somebody means by a text.
- ``conversation``: one conversation at a terminal, of `chat` and `sessions browse`.
- ``service``: a gateway as a service, of `serve`.
- ``agent_loading``: the agent that `--agent` names.
- ``demo_agent``: the agent without a model that answers where `--agent` names none.
- ``interrupts``: Ctrl-C in a conversation: the first one ends the turn that runs, the next one leaves.
- ``picker``: the list at which a person chooses a conversation, of `sessions browse`.
- ``demo``: the story that `demo` plays.
- ``output``: what people and programs see: JSON, tables, pages and live views.
- ``exit_codes``: the exit codes, and the advice for each error.
- ``settings``: the options in front of all commands, and the names of the program.
- ``version``: the version that is installed here, for reports of what went wrong.
"""
