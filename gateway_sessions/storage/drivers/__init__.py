"""Databases: each runs verbs in transactions and speaks our errors."""
