"""What a message advises where votes may be no votes, or teachers missing."""

PROBABILITIES = (
    "Sums or averages of probabilities are no votes, rounded or not, for one teacher moves the "
    "count of every class: store what each teacher says (`layout` labels or scores)"
)
FRACTION = f"has a fractional number; votes are whole counts. {PROBABILITIES}"
MISSING = (
    "If teachers with one vote each may be missing, give `teachers` N; if these are rounded "
    "probabilities, one teacher moves the count of every class: store what each teacher says "
    "(`layout` labels or scores)"
)
NO_VOTES = f"has no votes at all. {MISSING}"
