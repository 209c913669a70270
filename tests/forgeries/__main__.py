"""Print what every forged leaf of every report ends in: `python -m forgeries [KIND]`."""

import sys
from collections import Counter

from forgeries.cases import KINDS, case
from forgeries.forge import Checked, forged, kind_of_check

GIVEN = ("alone", "csv", "all")


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(words):
    """A table for each kind of report; exit code 1 where a forgery is neither caught nor named."""
    slips = 0
    for kind in words or KINDS:
        table, missed = Counter(), []
        for one in forged(case(kind), given=GIVEN):
            how = kind_of_check(one.path)
            table[how, one.way, one.given, one.ending.caught] += 1
            if not one.right:
                missed.append(one)
        say(f"\n{kind}\n{'checked by':14}{'forged':12}{'given':8}{'caught':>8}{'named':>8}")
        for how in Checked:
            for way in ("singly", "consistently"):
                for given in GIVEN:
                    caught, named = (table[how, way, given, told] for told in (True, False))
                    if caught or named:
                        row = f"{how.name.lower():14}{way:12} {given:7}{caught:>8}{named:>8}"
                        say(row)
        for one in missed:
            say(f"NEITHER CAUGHT NOR NAMED: {one}")
        slips += len(missed)
    return 1 if slips else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
