"""Votes that are texts and no name of a class: how many, which, and why. SECRET.

They count as missing votes. How many there are is a statistic of the votes like any other: it is
for the holder alone, and nothing that leaves may depend on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pate_cli.core.errors import printable, shortened
from pate_cli.votes.checks import ABSENT
from pate_cli.votes.names import ClassNames, abstains, python_texts

_TOLD = 10
_LOUD = 0.1
# Of texts all of another kind, those that came often so far are kept, each by its beginning.
_KEPT, _BEGINNING = 10_000, 200


@dataclass
class Unmatched:
    """A count of votes that are texts and match no name, and so count as missing. SECRET.

    It takes bounded memory however many votes are added.

    Attributes:
        names: what the classes are called; no names where votes are no texts.
        cast: how many votes say something in words; empty texts and nulls do not.
        votes: how many of them match no name.
        mended: how many of these `normalise` would match.
        abstained: how many of the others read as abstentions.
    """

    names: ClassNames = field(default=ClassNames((), listed=False), repr=False)
    cast: int = 0
    votes: int = 0
    mended: int = 0
    abstained: int = 0
    _strays: Counter[str] = field(default_factory=Counter, repr=False)

    def add(self, said: Iterable[tuple[str | None, int]]) -> None:
        """Count so many votes for each text."""
        for text, votes in said:
            if text is None or not text.strip():
                continue
            self.cast += votes
            if self.names.class_of(text) == ABSENT:
                self.votes += votes
                self._strays[text[:_BEGINNING]] += votes
                if self.names.normalising.class_of(text) != ABSENT:
                    self.mended += votes
                elif abstains(text):
                    self.abstained += votes
        if len(self._strays) > _KEPT:
            self._strays = Counter(dict(self._commonest(_KEPT // 2)))

    def add_column(self, column: pa.Array) -> None:
        """Count the votes in an Arrow array of texts."""
        texts, votes = column.value_counts().flatten()
        self.add(zip(python_texts(texts), votes.to_pylist(), strict=True))

    @property
    def texts(self) -> list[tuple[str, int, str | None]]:
        """The commonest ten texts that are no names; among very many different ones, about.

        Each with its beginning on one line, how many votes say it, and the likeliest reason.
        """
        found = self._commonest(_TOLD)
        return [(printable(shortened(text)), n, self.names.cause(text)) for text, n in found]

    def _commonest(self, most: int) -> list[tuple[str, int]]:
        return sorted(self._strays.items(), key=lambda item: (-item[1], item[0]))[:most]

    @property
    def share(self) -> float:
        """The part of the votes that match no name; 0 where none was cast."""
        return self.votes / self.cast if self.cast else 0.0

    def sentences(self) -> list[str]:
        """Return what there is to tell the holder, and nobody else; nothing where all match."""
        if not self.votes:
            return []
        loud = "WARNING: " if self.share > _LOUD else ""
        votes = f"{self.votes} of {self.cast} votes ({self.share:.1%})"
        found = [f"{loud}{votes} match no label name and count as missing:"]
        for text, count, cause in self.texts:
            found.append(f"  {count} x {text!r}" + ("" if cause is None else f", {cause}"))
        if self.mended:
            found.append(f"`normalise` would match {self.mended} of them")
        if self.votes > self.mended + self.abstained:
            found.append("`aliases` FILE says which texts stand for which name")
        return found

    def refusal(self) -> str:
        """Return why a file is refused most of whose votes match no name, and what to do.

        It counts them by cause and quotes none.
        """
        causes = {
            "would match with `normalise`": self.mended,
            "read as abstentions": self.abstained,
            "are other words (see `aliases`)": self.votes - self.mended - self.abstained,
        }
        told = ", ".join(f"{number} {what}" for what, number in causes.items() if number)
        fix = "give the `label_names` of these votes, or go on with `accept_unmatched`"
        return f"{self.votes} of {self.cast} votes match no label name: {told}; {fix}"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and texts, JSON-ready."""
        counts = {"cast": self.cast, "votes": self.votes, "share": self.share}
        commonest = [{"text": text, "votes": n, "cause": cause} for text, n, cause in self.texts]
        return {**counts, "normalise_would_match": self.mended, "commonest": commonest}
