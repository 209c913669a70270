"""What rows and entries mean: from arrays and tables to histograms."""
