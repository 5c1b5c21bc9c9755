"""Reading what other programs have left."""
