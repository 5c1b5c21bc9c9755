"""The search index in the database itself: a column beside the messages, filled by whoever writes one."""
