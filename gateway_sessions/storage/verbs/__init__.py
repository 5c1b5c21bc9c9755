"""Verbs: units of work on the truth, written once for all databases.

A verb is a plain generator: it yields named statements, receives their rows and returns a value. It never
awaits, asks the time, makes randomness or calls user code; those arrive as arguments.
"""
