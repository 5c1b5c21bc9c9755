"""`SessionStore`, the object that a program embeds, and the parts of its public interface.

- ``account_lanes``: Methods of `SessionStore` that give lanes from before named accounts to those
  accounts.
- ``control``: Operations that other programs may ask of the owner through the control socket, and its
  status.
- ``conversation_api``: Methods of `SessionStore` for conversations: reset, switch, branch, resume, and
  transcripts.
- ``database_news``: The listener of a store's database: passes on what the database reports to the parts
  of the store.
- ``database_opening``: The directory and the database of a store: their place, and the opening of the
  database.
- ``files_rewriter``: `FilesRewriter`: lets files beside the database, and what a process remembers, forget
  erased people.
- ``hermes_import``: The import of a Hermes home into an open store, with a dry run; a repeated import
  continues it.
- ``open_store``: `OpenStore`: the parts of a store while it is open, and the reads and writes that its
  methods share.
- ``opening``: Assembly of a store: database, recovery, snapshot and duties, in the order in which they
  start.
- ``privacy_api``: Methods of `SessionStore` that export a person's data or erase the person.
- ``queue_api``: Methods of `SessionStore` for the queue: enqueue, claim, list, cancel, move, requeue dead
  letters.
- ``session_api``: Methods of `SessionStore` for the session of a lane: find, note, suspend, set, list and
  explain.
- ``store``: `SessionStore`: finds and changes the session of each conversation; a gateway runs on it.
"""
