"""The rows in which every endpoint for chat completions takes a conversation."""
