"""Parts that the PostgreSQL and the MySQL engine share.

- ``batching``: Batching: transactions of different lanes that wait at the same moment share one on the
  server.
- ``blockers``: `Blocker`: a connection that holds locks others wait for, described for an operator.
- ``driver``: `ServerDriver`: runs each transaction on its own connection, retries conflicts, finishes
  commits.
- ``executor``: Execution of a transaction's statements on one server connection, and the meaning of server
  errors.
- ``opened_engines``: A server database as the whole database of a store: shared by nodes, or opened for
  reading only.
- ``ordering``: Order of transactions on the same lane within a process, and row ids that rise across nodes.
"""
