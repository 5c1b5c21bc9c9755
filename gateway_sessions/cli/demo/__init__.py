"""The story that `gateway-sessions demo` plays, with real stores, gateways and processes.

- ``bot_process``: The bot that is killed: each of its lives is a process of its own, and most of them end
  by SIGKILL.
- ``busy_modes``: The same burst of messages under four busy modes, side by side.
- ``crashes``: SIGKILL between answer and send, in the middle of a tool call, and again and again; and what
  people see.
- ``night``: A night in New York that loses an hour: one session is kept, another one ends, and there is a
  way back.
- ``paint``: How the demo looks: 80 columns, colours only where there is a terminal that shows them.
- ``story``: All that the package is for, in a few seconds.
"""
