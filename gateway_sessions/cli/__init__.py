"""The command line: it parses, calls and shows. What it decides by itself is how things look."""
