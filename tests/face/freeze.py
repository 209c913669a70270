"""Writes `frozen.json`: what every command line and every call gives, from the tool as it is.

    PYTHONPATH=tests:tests/support python tests/face/freeze.py

Run it where a new line or call was added. A number that changes in it is a fault, or the sentence
of the commit says why it is none.
"""

import itertools
import json
import tempfile
from pathlib import Path

from face import calls, inputs, lines, runner, wrong


def freeze(place):
    """All cases by kind and name, run in folders of this place."""
    folders = (place / str(number) for number in itertools.count())
    given = next(folders)
    inputs.write_inputs(given)
    return {
        "lines": {
            name: runner.case(next(folders), given, lines.lines_of(name)) for name in lines.LINES
        },
        "calls": {
            name: call(given, runner.with_inputs(next(folders), given, ""))
            for name, call in calls.CALLS.items()
        },
        "wrong": {
            name: runner.refused(next(folders), given, asked)[0].exit_code
            for name, asked in wrong.WRONG.items()
        },
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
        Path(__file__).with_name("frozen.json").write_text(text(freeze(Path(made))))
