"""Benchmarks: `python -m bench NAME [--seed N] [--json]`. Ratios against a reference measured in the same run."""
