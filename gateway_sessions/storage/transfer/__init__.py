"""Sessions on their way into files, and back."""
