"""Runs, releases and sessions on a disk that fails, in processes that die: one seed a history."""
