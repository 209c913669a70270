"""Speed of the program as whole processes: `make bench`; README.md says what is measured."""
