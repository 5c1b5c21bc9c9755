"""Files on disk: durable replacement, private modes, and threads for blocking calls.

- ``atomic_file``: Atomic replacement of files: after any failure a path holds the complete old or new
  content.
- ``private_files``: Files and directories that only the owner of their directory can read from the first
  instant.
- ``threads``: Blocking calls in a thread, with progress that is reported back on the event loop.
"""
