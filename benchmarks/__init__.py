"""Timings, side by side with what a user would do instead: `python -m benchmarks`."""
