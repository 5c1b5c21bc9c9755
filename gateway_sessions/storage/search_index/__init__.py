"""The search index on disk: a file of its own, made from the truth and thrown away without loss."""
