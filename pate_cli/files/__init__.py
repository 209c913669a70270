"""Outputs as one transaction: opened before a run spends, whole before they appear."""
