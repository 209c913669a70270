"""Sessions that are killed, cut off from power, or refused by the disk, at every moment."""
