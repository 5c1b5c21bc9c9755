"""The control socket by which other programs of the same user ask the owner of a store.

- ``client``: The client end of the control socket: one connection to the owner of a store.
- ``server``: The owner's end of the control socket: it answers clients within limits of time and number.
- ``socket``: The path and the peer check of the control socket, and frames sent over it within deadlines.
"""
