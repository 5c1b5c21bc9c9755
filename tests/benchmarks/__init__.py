"""What the package costs beside the bare machine and the peer; `python -m tests.benchmarks` runs it."""
