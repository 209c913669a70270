"""The command line: each command reads options, makes one library call, and writes outputs."""
