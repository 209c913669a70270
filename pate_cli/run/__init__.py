"""One pass over the votes: what is drawn, where, from what to what."""
