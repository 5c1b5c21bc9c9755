"""Many gateways on one database, and everything that can happen to them: `python -m tests.cluster`."""
