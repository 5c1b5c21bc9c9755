"""What is measured: each program runs in a process of its own and prints its figures."""
