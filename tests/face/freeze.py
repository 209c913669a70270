"""Writes `frozen.json`: what every command line and every call gives, from the tool as it is.

    PYTHONPATH=tests:tests/support python tests/face/freeze.py

Run it where a new line or call was added. A number that changes in it is a fault, or the sentence
of the commit says why it is none.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from pathlib import Path

from face import calls, inputs, lines, runner, test_wrong_input, wrong

FROZEN = Path(__file__).with_name("frozen.json")


def freeze(names=()):
    kept = json.loads(FROZEN.read_text()) if names else {}
    with tempfile.TemporaryDirectory() as made:
        place = Path(made, "inputs")
        place.mkdir()
        inputs.write_inputs(place)
        folders = (Path(made, str(number)) for number in itertools.count())

        def line(name):
            folder = runner.with_inputs(next(folders), place, " ".join(lines.lines_of(name)))
            return [runner.line(folder, each) for each in lines.lines_of(name)]

        def called(name):
            folder = next(folders)
            folder.mkdir()
            return calls.CALLS[name](place, folder)

        def refused(name):
            return test_wrong_input.refused(wrong.WRONG[name], place, next(folders))[0].exit_code

        for kind, cases, made_of in (
            ("lines", lines.LINES, line),
            ("calls", calls.CALLS, called),
            ("wrong", wrong.WRONG, refused),
        ):
            found = kept.get(kind, {})
            kept[kind] = {
                name: found[name] if names and name not in names else made_of(name)
                for name in cases
            }
    FROZEN.write_text(_text(kept))


def _text(kept):
    """A case a line, so that a change is seen where it is."""
    parts = []
    for kind, cases in kept.items():
        rows = [f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in cases.items()]
        parts.append(f" {json.dumps(kind)}: {{\n" + ",\n".join(rows) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    freeze(sys.argv[1:])
