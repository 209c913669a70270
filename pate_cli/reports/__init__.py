"""What leaves a run: labels, reports and the files that carry them."""
