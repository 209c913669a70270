"""Costs and reports: only this package turns secret costs into public numbers."""
