"""The labels of a run, in memory and in every format of files."""
