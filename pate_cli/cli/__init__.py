"""The command line: parse, load, one library call, write. Heavy imports wait inside commands."""
