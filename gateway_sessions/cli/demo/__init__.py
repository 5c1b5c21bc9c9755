"""The story that `gateway-sessions demo` plays, with real stores, gateways and processes.

- ``story``: the scenes in their order; who shares a conversation, and how what was said is found.
- ``bursts``: the scene of one burst of messages under four busy modes, side by side.
- ``night``: the scene of a night that loses an hour: one session is kept, another one ends.
- ``crashes``: the scene of processes that are killed, and what people see of it.
- ``bot_process``: the bot that is killed, as a program of its own.
- ``paint``: lines, colours and columns of the terminal.
"""
