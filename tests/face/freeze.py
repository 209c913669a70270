"""Adds to `frozen.json` what new command lines and calls give.

    PYTHONPATH=tests:tests/support python tests/face/freeze.py

What is frozen already stays; a case whose line is removed from the file is new. A number that
changes is a fault, or the sentence of the commit says why it is none.
"""

import itertools
import json
import tempfile
from pathlib import Path

from face import calls, inputs, lines, runner, wrong

FROZEN = Path(__file__).with_name("frozen.json")


def freeze(place, known):
    """All cases by kind and name; those that are not known are run in folders of this place."""
    folders = (place / str(number) for number in itertools.count())
    given = next(folders)
    inputs.write_inputs(given)

    def line(name):
        return runner.case(next(folders), given, lines.lines_of(name))

    def call(name):
        return calls.CALLS[name](given, runner.with_inputs(next(folders), given, ""))

    def refused(name):
        return runner.refused(next(folders), given, wrong.WRONG[name])[0].exit_code

    kinds = {"lines": (lines.LINES, line), "calls": (calls.CALLS, call)}
    kinds["wrong"] = (wrong.WRONG, refused)
    return {
        kind: {name: known[kind][name] if name in known[kind] else of(name) for name in cases}
        for kind, (cases, of) in kinds.items()
    }


def text(kept):
    """A case a line, so that a change is seen where it is."""
    parts = []
    for kind, cases in kept.items():
        rows = [f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in cases.items()]
        parts.append(f" {json.dumps(kind)}: {{\n" + ",\n".join(rows) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        found = freeze(Path(made), json.loads(FROZEN.read_text()))
    FROZEN.write_text(text(found))
