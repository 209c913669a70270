"""Private labels and an honest (epsilon, delta) from a file of teacher votes."""

__version__ = "0.1.0"
