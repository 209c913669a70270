"""The labels of a run: in memory, in every form they are written in, and counted."""
