"""Hostile and damaged input: `python -m fuzz`, tests/fuzz/README.md."""
