"""Votes that are texts and no names: how many, which, and why they may be none. SECRET.

They count as missing votes. How many there are is a statistic of the votes like any other: it is
for the holder alone, and nothing that leaves may depend on it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias

from pate_cli.core.arrays import Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import printable, shortened
from pate_cli.votes.checks import ABSENT
from pate_cli.votes.matching import ABSTENTION, Matching, abstains

Said: TypeAlias = tuple[Sequence[str | None], Ints]
"""Distinct texts, None for no vote, and how many votes are each."""

TOLD: Final = 10
"""So many texts are told of."""
_LOUD: Final = 0.1
# Of texts all of another kind, those that came often so far are kept, each by its beginning.
_KEPT, _BEGINNING = 1 << 16, 1000
_SHOWN: Final = 60


@dataclass(frozen=True)
class Unmatched:
    """One text that is no name. SECRET.

    Attributes:
        text: it, on one line and not too long.
        votes: how many are it.
        cause: the likeliest reason, in words; None where none is known.
    """

    text: str
    votes: int
    cause: str | None


@dataclass(frozen=True)
class Unnamed:
    """The votes that are texts and no names, and so count as missing. SECRET: of the votes.

    Attributes:
        cast: how many texts there are; empty ones and nulls are no votes.
        votes: how many of them are no name.
        mended: how many of these `normalise` would match.
        texts: the commonest; among very many different ones, about.
    """

    cast: int
    votes: int
    mended: int
    texts: tuple[Unmatched, ...] = field(repr=False)

    @property
    def share(self) -> float:
        """Of the votes that were cast; 0 where none was."""
        return self.votes / self.cast if self.cast else 0.0

    def sentences(self) -> list[str]:
        """What there is to tell the holder, and nobody else; nothing where all are names."""
        if not self.votes:
            return []
        loud = "WARNING: " if self.share > _LOUD else ""
        found = [
            f"{loud}{self.votes} of {_votes(self.cast)} ({self.share:.1%}) match no label name and "
            "count as missing:"
        ]
        found += [
            f"  {each.votes} x {each.text!r}" + (f", {each.cause}" if each.cause else "")
            for each in self.texts
        ]
        if self.mended:
            found.append(f"`normalise` would match {self.mended} of them")
        others = {None} if self.mended else {each.cause for each in self.texts} - {ABSTENTION}
        if any(each.cause in others for each in self.texts):
            found.append("`aliases` FILE says which texts stand for which name")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The same, JSON-ready."""
        return {
            "cast": self.cast,
            "votes": self.votes,
            "share": self.share,
            "normalise_would_match": self.mended,
            "commonest": [dict(vars(each)) for each in self.texts],
        }


NOT_IN_WORDS: Final = Unnamed(cast=0, votes=0, mended=0, texts=())
"""Of votes that are no texts."""


@dataclass
class NameTally:
    """The same while it is counted."""

    matching: Matching
    cast: int = 0
    named: int = 0
    mended: int = 0
    strays: dict[str, int] = field(default_factory=dict)

    def add(self, texts: Sequence[str | None], votes: Ints) -> None:
        """Count so many votes for each of these texts."""
        mended = self.matching.normalising
        for text, number in zip(texts, votes.tolist(), strict=True):
            if text is None:
                continue
            if self.matching.place(text) != ABSENT:
                self.cast += number
                self.named += number
                continue
            if abstains(text):
                continue
            self.cast += number
            if mended is not None and mended.place(text) != ABSENT:
                self.mended += number
            beginning = text[:_BEGINNING]
            self.strays[beginning] = self.strays.get(beginning, 0) + number
        if len(self.strays) > _KEPT:
            self.strays = dict(self._commonest(_KEPT // 2))

    def count(self, said: Iterator[Said], *, until_named: bool) -> NameTally:
        """The same with all of these added; with `until_named` up to the first that has a name."""
        for texts, votes in said:
            self.add(texts, votes)
            if until_named and self.named:
                break
        return self

    def found(self) -> Unnamed:
        """What was counted."""
        commonest = self._commonest(TOLD)
        texts = tuple(
            Unmatched(printable(shortened(text, _SHOWN)), votes, self.matching.cause(text))
            for text, votes in commonest
        )
        return Unnamed(self.cast, self.cast - self.named, self.mended, texts)

    def _commonest(self, most: int) -> list[tuple[str, int]]:
        return heapq.nsmallest(most, self.strays.items(), key=lambda item: (-item[1], item[0]))


def _votes(number: int) -> str:
    return "1 vote" if number == 1 else f"{number} votes"
