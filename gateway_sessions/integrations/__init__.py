"""Integrations of platforms: each a folder of functions without I/O, and thin doors to client libraries."""
