"""Outputs as one transaction: everything a run promised appears, or nothing does."""
