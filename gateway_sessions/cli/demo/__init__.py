"""The story that `gateway-sessions demo` plays, with real stores, gateways and processes.

- ``bot_process``: The bot that is killed: each of its lives is a process of its own, and most of them end
  by SIGKILL.
- ``busy_modes``: The same burst of messages in four busy modes, side by side.
- ``crashes``: SIGKILL between answer and send, in a tool call, and again and again; and what people see.
- ``night``: The night in New York that loses an hour: one session is kept, another one ends, and is brought
  back.
- ``paint``: The look of the demo: 80 columns, and colours only on a terminal.
- ``story``: The tour that `gateway-sessions demo` gives in a few seconds.
"""
