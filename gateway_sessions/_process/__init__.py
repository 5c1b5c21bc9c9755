"""The process below all layers: its clock, host tasks, connections, installed providers and old names.

- ``background``: Background work ends with a block: a `Resource` has a host task for it, and
  `in_background` runs beside it.
- ``clock``: `SystemClock`: the only module that reads the machine's clock.
- ``failpoints``: Named points at which a test can stop, kill or fail the program; nothing happens unless
  one is armed.
- ``installed_packages``: The installed packages: the version of this one, and those that bring kinds of
  databases along.
- ``moved_names``: The old places of modules and names still work, with a warning at the line that imports
  from them.
- ``request_log``: `hide_in_request_log`: keeps the tokens that stand in addresses out of the log of the HTTP
  client.
- ``retry``: Retries after passing faults of the database, with pauses that grow, and counts of what they
  spoilt.
- ``streams``: All servers and clients of the package accept and close connections by these functions.
- ``waits``: Marks of waits, by which a test clock tells a task that rests from one that works.
"""
