"""Forged reports: what `verify` says of each; README.md tells more."""
