"""Files beside the votes: all are public, and small enough to be held in memory."""
