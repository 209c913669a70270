"""The command line: each command parses options, makes one library call, and writes outputs."""
