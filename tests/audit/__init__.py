"""Black-box lower bounds on epsilon beside what is claimed: `make audit`; README.md says how."""
