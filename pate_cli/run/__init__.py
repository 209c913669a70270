"""One pass over the votes, which draws labels, collects costs, and publishes the results."""
