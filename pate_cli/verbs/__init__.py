"""The public functions of the library, called verbs; the command line calls nothing else.

Votes are a path, an array, a table or an opened file, and results are frozen dataclasses. A
mechanism is given as an instance, or by its name with some of its parameters; the other parameters
get defaults, which may depend on the numbers of teachers and queries. Messages name parameters in
backticks, and the command line replaces each name by its option.
"""
