"""The truth: a database behind verbs, and the files that are made from it."""
