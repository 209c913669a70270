"""What votes would cost, and why. SECRET, except the data-independent part."""
