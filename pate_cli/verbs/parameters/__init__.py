"""Parameters of the verbs: help, range and names by name, joined with the verbs' signatures."""
