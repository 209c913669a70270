"""Made-up ballots in words: `python sample_votes/ballots.py` writes them to the folder it runs in.

`python sample_votes/ballots.py LABELS` says how many of the labels in a file are right.

Thirty teachers, language models with private records in their prompts, say of thirty descriptions
which of 200 dishes they mean. They write it as models do: in capitals, with punctuation, in another
Unicode form; some say nothing, some talk nonsense. A public model, with a prompt that anybody may
see, has guessed before them. Four files come out:

    names.txt       the 200 dishes, one a line
    asked.jsonl     a line a query, as `pate session` reads it: its id, its votes and the guess
    ballots.jsonl   the same votes as `pate aggregate` reads them
    guesses.csv     the same guesses, beside it
"""

from __future__ import annotations

import csv
import json
import random
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TEACHERS = 30
QUERIES = 30
SEED = 2028
OF = ("apple", "beet", "carrot", "celery", "cherry", "fennel", "fig", "leek", "lentil", "lime")
OF += ("mango", "nettle", "onion", "pea", "pear", "plum", "potato", "quince", "rhubarb", "tomato")
DISHES = ("brûlée", "compote", "crumble", "curry", "purée", "salad", "sorbet", "soufflé")
DISHES += ("soup", "tart")
NAMES = tuple(f"{of} {dish}" for of in OF for dish in DISHES)
GUESSED = 0.75
"""How often the public model is right."""
EASE = (0.97, 1.0)
"""Between which shares teachers who say something are right, by query."""
SILENT, NONSENSE = 0.03, 0.02
_NOTHING = (None, "", "I don't know")
_BABBLE = ("As a language model", "something with butter", "42", "soup or salad")


def written(dice: random.Random, name: str) -> str:
    """A name as a model may write it."""
    form = dice.choice(
        (str, str.title, str.upper, "{}.".format, '"{}"'.format, " {}\n".format, _decomposed)
    )
    return form(name)


def _decomposed(name: str) -> str:
    return unicodedata.normalize("NFD", name.capitalize())


def mistaken(dice: random.Random, name: str) -> str:
    """Another dish, often of the same."""
    of = name.split()[0]
    near = [other for other in NAMES if other != name and other.startswith(f"{of} ")]
    return dice.choice(near if dice.random() < 0.5 else [one for one in NAMES if one != name])


def vote(dice: random.Random, meant: str, ease: float) -> str | None:
    """What one teacher says."""
    chance = dice.random()
    if chance < SILENT:
        return dice.choice(_NOTHING)
    if chance < SILENT + NONSENSE:
        return dice.choice(_BABBLE)
    return written(dice, meant if dice.random() < ease else mistaken(dice, meant))


def queries() -> list[dict[str, Any]]:
    """All of them: id, what was meant, votes and guess."""
    dice = random.Random(SEED)  # noqa: S311 - made-up votes
    found = []
    for number in range(1, QUERIES + 1):
        meant, ease = dice.choice(NAMES), dice.uniform(*EASE)
        guess = meant if dice.random() < GUESSED else mistaken(dice, meant)
        votes = [vote(dice, meant, ease) for _ in range(TEACHERS)]
        found.append({"id": f"d{number:02}", "truth": meant, "votes": votes, "prior": guess})
    return found


def right(labels: Path) -> str:
    """How many of the labels in a file, as `pate session` or `pate aggregate` writes it."""
    with labels.open(encoding="utf-8", newline="") as file:
        if labels.suffix == ".csv":
            said = {row["query_id"]: row["label"] for row in csv.DictReader(file)}
        else:
            said = {row["id"]: row["label"] for row in map(json.loads, file)}
    meant = {one["id"]: one["truth"] for one in queries()}
    given = [name for name, label in said.items() if label]
    found = sum(said[name] == meant[name] for name in given)
    return f"{len(given)} of {len(meant)} queries have a label, and {found} of these are right"


def main() -> None:
    """Write the files, or say how many labels are right."""
    if sys.argv[1:]:
        sys.stdout.write(right(Path(sys.argv[1])) + "\n")
        return
    made = queries()
    Path("names.txt").write_text("".join(f"{name}\n" for name in NAMES), encoding="utf-8")
    _lines("asked.jsonl", ({key: one[key] for key in ("id", "votes", "prior")} for one in made))
    _lines("ballots.jsonl", ({"query_id": one["id"], "votes": one["votes"]} for one in made))
    with Path("guesses.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerows([("query_id", "label"), *((one["id"], one["prior"]) for one in made)])


def _lines(name: str, rows: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    Path(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
