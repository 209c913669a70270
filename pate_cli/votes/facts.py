"""What is public about votes beside their shape: what a round keeps and a report tells of them."""

from __future__ import annotations

from typing import Any, Final

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError, quoted
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import PublicFact
from pate_cli.votes.checks import LARGEST


@dataclass(frozen=True)
class Group:
    """What is public about a group of teachers.

    Attributes:
        group: its name.
        teachers: how many there are, at least 1.
        largest_weight: of one of them, at least 1 (votes).
        total_weight: of all of them (votes).
        teachers_per_record: k_g ≥ 1, how many of them one record may have trained.
        votes_per_record: K_g, the sum of the k_g largest weights: no record of this group moves
            more votes of a query.
    """

    group: str
    teachers: int
    largest_weight: int
    total_weight: int
    teachers_per_record: int
    votes_per_record: int

    def __post_init__(self) -> None:
        w, k, most = self.largest_weight, self.teachers_per_record, self.votes_per_record
        others, left = self.teachers - k, self.total_weight - most
        # Weights are at least 1, and those of the others at most the mean of the k largest.
        if not (
            1 <= k <= self.teachers
            and w >= 1
            and w + k - 1 <= most <= k * w
            and others <= left <= others * (most // k)
            and self.total_weight <= LARGEST
        ):
            raise VoteError(f"group {quoted(self.group)}: its numbers contradict each other")


@dataclass(frozen=True)
class PriorFacts:
    """What is public about a prior.

    Attributes:
        weight: B, how many votes it has.
        guesses: how many of the rows it says something about.
        sha256: of its file, in hexadecimal.
    """

    weight: int
    guesses: int
    sha256: str

    def texts(self) -> dict[str, str]:
        """What a file of labels says of it beside the weight, which is the mechanism's."""
        return {"prior_guesses": str(self.guesses), "prior_sha256": self.sha256}


@dataclass(frozen=True)
class Facts:
    """What is public about votes beside their shape, and goes with all that is said of a run.

    Attributes:
        read_off: facts that are taken as public and were read off the votes.
        groups: of the teachers, where they count differently; none where they do not.
        label_names: what the classes are called, class 0 first; None for their numbers.
        label_set: the labels of a query, where it has several.
        prior: a public prior that votes, too.
    """

    read_off: tuple[PublicFact, ...] = ()
    groups: tuple[Group, ...] = ()
    label_names: tuple[str, ...] | None = None
    label_set: LabelSet | None = None
    prior: PriorFacts | None = None

    @property
    def of_round(self) -> dict[str, Any]:
        """Those that a round keeps."""
        return {
            "read_off": self.read_off,
            "groups": self.groups,
            "label_set": self.label_set,
            "prior": self.prior,
        }


PLAIN: Final = Facts()
"""Of votes whose classes are numbers and whose teachers count alike."""
