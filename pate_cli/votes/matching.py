"""Texts as classes: which name a text stands for, and why it may stand for none.

All that decides it is public, said before a vote is seen: the names, aliases of them, and whether
spellings count that differ in form alone.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, quoted
from pate_cli.votes.checks import ABSENT

MOST_NAMES = 1 << 24
# Half of a pair, which has no UTF-8; and what numpy takes for the end of a text.
_UNFIT = re.compile("[\ud800-\udfff\0]")
_MARKS: Final = ".,;:!?"
_QUOTES: Final = frozenset({'""', "''", "``", "“”", "„“", "””", "‘’", "‚‘", "’’", "«»", "»«"})
_CASE, _BLANKS, _MARKING, _FORM = "case", "blanks", "punctuation", "Unicode form"
_STEPS: Final = (_CASE, _BLANKS, _MARKING, _FORM)
"""In which two spellings of a name may differ, the commonest first."""
ABSTENTION: Final = "an abstention"
_ABSTENTIONS: Final = frozenset(
    {"-", "--", "?", "abstain", "abstention", "n/a", "na", "nan", "nil", "none", "null"}
    | {"undecided", "unknown", "unsure"}
)


@dataclass(frozen=True)
class Matching:
    """Which class a text is a vote for.

    Attributes:
        names: of the classes, class 0 first.
        normalise: whether texts match that are alike but for case, blanks around them and several
            within, punctuation at the end and quotes around them, and Unicode form.
        aliases: other texts and the names they stand for; with `normalise` any spelling of them.

    Raises:
        ParameterError: names that are none or alike, or an alias of what is no name, or of two.
    """

    names: tuple[str, ...]
    normalise: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.normalise, bool | np.bool_):
            raise ParameterError(f"`normalise` must be true or false, got {quoted(self.normalise)}")
        if not isinstance(self.aliases, Mapping):
            raise ParameterError(f"`aliases` must map texts to names, got {quoted(self.aliases)}")
        object.__setattr__(self, "names", checked_names(self.names))
        object.__setattr__(self, "normalise", bool(self.normalise))
        object.__setattr__(self, "aliases", dict(self.aliases))
        if not self.plain:
            # As they are used: whatever is contradictory is refused now.
            _ = self._spellings

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("names", "normalise", "aliases")}

    @property
    def plain(self) -> bool:
        """Whether a text is a name, letter by letter, or none."""
        return not (self.normalise or self.aliases)

    @property
    def leniency(self) -> tuple[Any, ...]:
        """All that decides beside the names what a text is, whatever order it was given in."""
        return self.normalise, sorted(self.aliases.items())

    @property
    def known(self) -> Sequence[str]:
        """Texts that match as they stand, names first, each once."""
        return self.names if self.plain else self._known[0]

    @property
    def places_known(self) -> Ints:
        """The classes of these."""
        return np.arange(len(self.names)) if self.plain else self._known[1]

    def place(self, text: str | None) -> int:
        """The class of one text; -1 for none."""
        if text is None:
            return ABSENT
        return self._spellings.get(normalised(text) if self.normalise else text, ABSENT)

    def places(self, texts: Sequence[str | None] | NDArray[np.str_]) -> Ints:
        """The class of each text, -1 for one that matches none; every distinct text is seen once.

        Raises:
            ParameterError: what is neither a text nor None.
        """
        if isinstance(texts, np.ndarray) and texts.dtype.kind == "U":
            return self._of_array(texts)
        try:
            distinct = dict.fromkeys(texts)
        except TypeError:  # of what cannot be told apart
            distinct = {0: None}
        if not all(text is None or isinstance(text, str) for text in distinct):
            raise ParameterError("votes are texts, or None where one is missing")
        found = {text: self.place(text) for text in distinct}
        return np.fromiter(map(found.__getitem__, texts), dtype=np.int64, count=len(texts))

    def cause(self, text: str) -> str | None:
        """The likeliest reason why a text matches none; None for one that does, or without any."""
        if self.place(text) != ABSENT:
            return None
        if abstains(text):
            return ABSTENTION
        for steps, spellings in () if self.normalise else self._by_steps:
            if _spelling(text, steps) in spellings:
                return "differs only in " + _and(steps)
        return ABSTENTION if normalised(text) in _ABSTENTIONS else None

    def _of_array(self, texts: NDArray[np.str_]) -> Ints:
        """The same of an array of any sides: what is known is looked up, the rest spelled once."""
        known, order = self._sorted
        near = np.minimum(np.searchsorted(known, texts), len(known) - 1)
        alike = known[near] == texts
        places: Ints = np.where(alike, self.places_known[order[near]], ABSENT)
        if self.normalise and not alike.all():
            others, inverse = np.unique(texts[~alike], return_inverse=True)
            places[~alike] = self.places(plain_texts(others))[inverse]
        return places

    @property
    def remedy(self) -> str:
        """What to try where no vote is a name: whatever the votes are, the same."""
        if self.normalise:
            return "give `aliases` if other words stand for them, and see that the file is the one"
        return (
            "give `normalise` if they differ in case, blanks, punctuation or Unicode form alone, "
            "`aliases` if other words stand for them"
        )

    @functools.cached_property
    def normalising(self) -> Matching | None:
        """The same with `normalise`; None where it has that, or makes names alike."""
        if self.normalise:
            return None
        try:
            return Matching(self.names, normalise=True, aliases=self.aliases)
        except ParameterError:
            return None

    @functools.cached_property
    def _spellings(self) -> dict[str, int]:
        """Every spelling that is matched, as it is compared, and its class."""
        spell = normalised if self.normalise else str
        found: dict[str, int] = {}
        for place, name in enumerate(self.names):
            spelling = spell(name)
            if not spelling:
                raise ParameterError(
                    f"`label_names`: name {place} is of blanks alone, and `normalise` leaves "
                    "nothing of it"
                )
            first = found.setdefault(spelling, place)
            if first != place:
                raise ParameterError(
                    f"`label_names`: `normalise` makes {quoted(self.names[first])} and "
                    f"{quoted(name)} alike"
                )
        named = dict(found)
        for number, (alias, name) in enumerate(self.aliases.items()):
            if not fit(alias) or not spell(alias):
                raise ParameterError(f"`aliases`: alias {number} is empty, or no text")
            target = named.get(spell(name), ABSENT) if isinstance(name, str) else ABSENT
            if target == ABSENT:
                raise ParameterError(
                    f"`aliases`: {quoted(alias)} stands for {quoted(name)}, which is none of "
                    "`label_names`"
                )
            other = found.setdefault(spell(alias), target)
            if other != target:
                raise ParameterError(
                    f"`aliases`: {quoted(alias)} stands for {quoted(self.names[target])}, and for "
                    f"{quoted(self.names[other])}, too"
                )
        return found

    @functools.cached_property
    def _known(self) -> tuple[tuple[str, ...], Ints]:
        known = tuple(dict.fromkeys((*self.names, *map(str, self.aliases))))
        return known, np.array([self.place(text) for text in known], dtype=np.int64)

    @functools.cached_property
    def _sorted(self) -> tuple[NDArray[np.str_], NDArray[np.intp]]:
        known = np.array(self.known)
        order = np.argsort(known)
        return known[order], order

    @functools.cached_property
    def _by_steps(self) -> list[tuple[tuple[str, ...], set[str]]]:
        """What names and aliases are after each choice of steps, fewer before more."""
        chosen = itertools.chain.from_iterable(
            itertools.combinations(_STEPS, count) for count in range(1, len(_STEPS) + 1)
        )
        return [(steps, {_spelling(text, steps) for text in self.known}) for steps in chosen]


Names: TypeAlias = Matching | Sequence[str]
"""What classes are called, and which other texts stand for them; names alone are none."""


def matching_of_names(names: Names | None) -> Matching | None:
    """How texts beside the votes are matched: as those in the votes."""
    return names if names is None or isinstance(names, Matching) else Matching(tuple(names))


def order_of(words: Sequence[str], names: Names | None) -> list[int] | None:
    """Where in `words` each class is, if each is there once and nothing else is."""
    matching = matching_of_names(names)
    if matching is None or len(words) != len(matching.names):
        return None
    places = [matching.place(word) for word in words]
    if sorted(places) != list(range(len(words))):
        return None
    return sorted(range(len(words)), key=places.__getitem__)


def places_of_words(words: Sequence[str], names: Names | None) -> list[int] | None:
    """The class of each word, ABSENT for none; without names only true and false have one, 1 and 0.

    None for other words without names.
    """
    matching = matching_of_names(names)
    if matching is not None:
        return [matching.place(word) for word in words]
    known = {"false": 0, "true": 1, "": ABSENT}
    found = [known.get(word.casefold()) for word in words]
    return None if None in found else [place for place in found if place is not None]


def fit(text: object) -> bool:
    """Whether something can be a text that votes are compared with."""
    return isinstance(text, str) and text != "" and not _UNFIT.search(text)


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names as plain texts, which those of numpy are not everywhere.

    Raises:
        ParameterError: fewer than 2, one that is empty or there twice, or what is no text.
    """
    seen: set[str] = set()
    for place, name in enumerate(names):
        if not fit(name):
            raise ParameterError(f"`label_names`: name {place} is empty, or no text")
        if name in seen:
            raise ParameterError(f"`label_names`: {quoted(name)} is there twice")
        seen.add(name)
    if not 2 <= len(names) <= MOST_NAMES:
        raise ParameterError(f"`label_names`: at least 2 names are needed, got {len(names)}")
    return tuple(str(name) for name in names)


def normalised(text: str) -> str:
    """A text as it is compared with `normalise`: alike for all spellings that it does not tell."""
    return _spelling(text, _STEPS)


def abstains(text: str) -> bool:
    """Whether a text says nothing."""
    return not text or text.isspace()


def plain_texts(array: NDArray[np.str_]) -> list[str | None]:
    """The entries of an array of one side; None for one with what is no letter, as files may."""
    if not array.size:
        return []
    letters = np.ascontiguousarray(array).view(np.dtype("u4").newbyteorder(array.dtype.byteorder))
    largest = letters.reshape(len(array), -1).max(axis=1, initial=0)
    return [
        str(array[at]) if letter <= sys.maxunicode else None
        for at, letter in enumerate(largest.tolist())
    ]


def _spelling(text: str, steps: Iterable[str]) -> str:
    # Unicode compares without case what is decomposed (D145 of the standard).
    if _FORM in steps:
        text = unicodedata.normalize("NFD", text)
    if _BLANKS in steps:
        text = " ".join(text.split())
    if _MARKING in steps:
        text = _unmarked(text)
    if _CASE in steps:
        text = text.casefold()
    return unicodedata.normalize("NFC", text) if _FORM in steps else text


def _unmarked(text: str) -> str:
    """Without punctuation at its end and quotes around it, unless nothing else is there."""
    while True:
        inner = text.rstrip(_MARKS)
        if len(inner) > 1 and inner[0] + inner[-1] in _QUOTES:
            inner = inner[1:-1]
        if inner == text or not inner.strip():
            return text
        text = inner.strip()


def _and(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
