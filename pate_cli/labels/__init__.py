"""The labels of a run: in memory, in every format of files, and counted."""
