"""The control socket by which other programs of the same user ask the owner of a store.

- ``client``: The client end of the control socket: one connection to the owner of a store.
- ``frames``: Frames of the control protocol that are sent and received over a stream, each within a
  deadline.
- ``server``: The owner's end of the control socket: it answers clients within limits of time and number.
- ``socket_address``: The path of the control socket of a home, and the check of the user at its other
  end.
"""
