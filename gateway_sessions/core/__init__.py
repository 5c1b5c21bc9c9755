"""Decisions: values in, values out. Nothing here does I/O, reads a clock or starts a task."""
