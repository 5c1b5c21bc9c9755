"""Sessions as files: JSON Lines that can be taken in again, Markdown and HTML for people."""
