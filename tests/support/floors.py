"""The floors of the house: what the architecture test holds, and the page on it draws."""

# From the ground up; rooms of one floor do not know of each other.
FLOORS = [
    ["core"],
    ["files", "accounting"],
    ["labels", "votes"],
    ["mechanisms"],
    ["disclosure"],
    ["run"],
    ["planning"],
    ["paper"],
    ["verbs"],
    ["cli"],
]
