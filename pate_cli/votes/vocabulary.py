"""Names that nobody listed: whatever a vote says is one, and which were said is SECRET.

A name is public once it is released as a label. Until then neither it nor how many there are may
leave: not in a line about the file, not in a message, not in a size.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Ints
from pate_cli.core.checks import MOST_CLASSES
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.votes.checks import ABSENT
from pate_cli.votes.matching import Matching, abstains, fit, normalised, plain_texts
from pate_cli.votes.unnamed import Said


@dataclass(frozen=True, repr=False)
class Vocabulary(Matching):
    """Which class a text is a vote for, where every text is a name; SECRET.

    A text that is empty, blank or cannot be written as UTF-8 is a missing vote. With `normalise`
    spellings that are alike are one name, in the form that they are compared by: which of them it
    is would be told by one vote.

    Attributes:
        names: what was said, in order of code points, so that nobody's vote decides which of two
            names comes first; none before the votes were read, and where they are numbers, which
            are the names of themselves.
        normalise: as in Matching.
        aliases: none.
    """

    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Nothing to check: they are as the votes have them."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(normalise={self.normalise})"

    @property
    def leniency(self) -> tuple[Any, ...]:
        """The names, too: nothing else tells them."""
        return self.normalise, self.names

    def heard(self, said: Iterable[Said]) -> Vocabulary:
        """The names among these texts; VoteError for more than there can be classes."""
        names: set[str] = set()
        for texts, _ in said:
            names.update(name for name in map(self._name, texts) if name is not None)
        if len(names) > MOST_CLASSES:
            raise VoteError(f"the votes hold more than {MOST_CLASSES} names")
        return replace(self, names=tuple(sorted(names)))

    def place(self, text: str | None) -> int:
        """The class of one text; -1 for none."""
        name = self._name(text)
        return ABSENT if name is None else self._spellings.get(name, ABSENT)

    def title(self, place: int) -> str:
        """What a class is called."""
        return self.names[place] if self.names else str(place)

    def _name(self, text: str | None) -> str | None:
        if text is None or not fit(text):
            return None
        name = normalised(text) if self.normalise else text
        return None if abstains(name) else name

    def _of_array(self, texts: NDArray[np.str_]) -> Ints:
        distinct, inverse = np.unique(texts, return_inverse=True)
        return self.places(plain_texts(distinct))[inverse.reshape(texts.shape)]

    @functools.cached_property
    def _spellings(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}
