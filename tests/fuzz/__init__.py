"""Hostile and damaged input; tests/fuzz/README.md."""
