"""The methods of `SessionDB`, one group to a module: each says what is asked for and runs a verb."""
