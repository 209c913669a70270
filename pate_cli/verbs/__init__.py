"""The verbs of the library, one function each; the command line calls nothing else.

Votes are a path, an array, a table or an opened file, and results are frozen. A mechanism is given
as an instance, or by its name with some of its parameters; the others get defaults in proportion to
the run. Messages name parameters in backticks, which the command line turns into its flags.
"""
