"""The verbs of the library, one function each; the command line calls nothing else.

Votes go in as a path, an array, a table or an opened file; results come out frozen. A mechanism is
an instance, or a name with some of its parameters, the others in proportion to the run. Messages
name parameters in backticks, which the command line turns into its flags.
"""
