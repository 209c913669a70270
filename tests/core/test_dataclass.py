"""Dataclasses finished when they are needed are those of the standard library in all but that."""

import copy
import dataclasses
import inspect
import pickle
import threading
from collections.abc import Sized
from dataclasses import FrozenInstanceError, field
from functools import partial

import pytest

from pate_cli.core.dataclass import dataclass


def classes(make):
    """A class with a default, one that inherits it, and one of one's own making."""

    @make(frozen=True)
    class Base:
        votes: int
        names: tuple = field(default_factory=tuple)

        def __post_init__(self):
            if self.votes < 0:
                raise ValueError("votes")

    @make(frozen=True, kw_only=True)
    class Derived(Base, Sized):
        weight: float = 1.0

        def __len__(self):
            return self.votes

    @make(eq=False)
    class Bare:
        pass

    return Base, Derived, Bare


@pytest.fixture(params=["base", "derived"])
def pair(request):
    """The same class by this module and by the standard library."""
    which = ["base", "derived"].index(request.param)
    return classes(dataclass)[which], classes(dataclasses.dataclass)[which]


def unfinished(cls):
    return "__dataclass_fields__" in vars(cls) and not isinstance(
        inspect.getattr_static(cls, "__dataclass_fields__"), dict
    )


def test_a_class_is_finished_by_its_first_instance_and_not_before():
    base, derived, bare = classes(dataclass)
    assert unfinished(base)
    assert unfinished(derived)
    assert unfinished(bare)
    assert derived(3).votes == 3
    assert not unfinished(base), "its base came first"
    assert not unfinished(derived)
    assert unfinished(bare)


def test_it_is_what_the_standard_library_makes(pair):
    ours, theirs = pair
    for cls in pair:
        first, second = cls(2), cls(2, names=())
        assert first == second
        assert hash(first) == hash(second)
        assert first != cls(1)
        assert dataclasses.asdict(dataclasses.replace(first, votes=5))["votes"] == 5
        with pytest.raises(FrozenInstanceError):
            first.votes = 3
        with pytest.raises(ValueError, match="votes"):
            cls(-1)
        with pytest.raises(TypeError):
            cls()
    assert repr(ours(2)) == repr(theirs(2))
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__doc__ == theirs.__doc__


@pytest.mark.parametrize(
    "look",
    [
        dataclasses.fields,
        dataclasses.is_dataclass,
        inspect.signature,
        lambda cls: cls.__match_args__,
        lambda cls: cls.__dataclass_params__,
    ],
)
def test_whoever_asks_before_the_first_instance_is_told(pair, look):
    ours, theirs = pair
    said, meant = look(ours), look(theirs)
    if look is inspect.signature:  # what a default factory is called has an address
        assert list(said.parameters) == list(meant.parameters)
        assert [each.kind for each in said.parameters.values()] == [
            each.kind for each in meant.parameters.values()
        ]
    else:
        assert str(said) == str(meant) or look is dataclasses.fields
    assert [each.name for each in dataclasses.fields(ours)] == [
        each.name for each in dataclasses.fields(theirs)
    ]


def odd_classes(make):
    """Fields that are hashed, compared or shown apart, and methods of a class's own."""

    @make(frozen=True)
    class Apart:
        votes: int
        seen: list = field(default_factory=list, hash=False)
        rows: int = field(default=3, compare=False, repr=False)

    @make(frozen=True)
    class Own(Apart):
        more: int = 0

        def __eq__(self, other):
            return True

        def __repr__(self):
            return "own"

        def __hash__(self):
            return 7

    @make(frozen=True)
    class OwnEquality:
        votes: int

        def __eq__(self, other):
            return self.votes % 2 == other.votes % 2

    @make()
    class Loose:
        votes: int = 0

    @make(frozen=True)
    class Bare:
        pass

    @make(frozen=True, eq=False)
    class Same(Apart):
        other: int = 1

    class Plain(Apart):
        pass

    return Apart, Own, OwnEquality, Loose, Bare, Same, Plain


def outcome(act):
    try:
        return act()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "look",
    [
        repr,
        hash,
        lambda one: one == one.__class__(*vars(one).values()),
        lambda one: one == copy.copy(one),
        lambda one: one != "something else",
        lambda one: setattr(one, "votes", 9) or vars(one),
        lambda one: setattr(one, "new", 9) or vars(one),
        lambda one: delattr(one, "votes"),
        lambda one: delattr(one, "nothing"),
        lambda one: type(one).__hash__ is None,
        lambda one: dataclasses.replace(one, votes=1) == one,
        lambda one: one == type(one)(2, rows=5),
        lambda one: one == type(one)(2, other=5),
        lambda one: hash(one) == hash(type(one)(2, [1])),
    ],
)
def test_methods_do_what_compiled_ones_would(look):
    for ours, theirs in zip(
        odd_classes(dataclass), odd_classes(dataclasses.dataclass), strict=True
    ):
        arguments = (2,) if dataclasses.fields(theirs) else ()
        said, meant = (outcome(partial(look, cls(*arguments))) for cls in (ours, theirs))
        assert str(said) == str(meant), theirs


@dataclass(frozen=True)
class Sent:
    """What another process sends."""

    votes: int


def test_an_instance_that_was_never_made_here_is_one_all_the_same():
    # What pickle does for an instance of another process: no `__init__`.
    sent = object.__reduce_ex__(Sent(3), 2)
    known = pickle.dumps(Sent(3))

    @dataclass(frozen=True)
    class Fresh:
        votes: int

    made, arguments, state = sent[0], sent[1], sent[2]
    fresh = made(Fresh, *arguments[1:])
    fresh.__dict__.update(state)
    assert not unfinished(Fresh)
    assert fresh == Fresh(3)
    assert repr(fresh).endswith("Fresh(votes=3)")
    with pytest.raises(FrozenInstanceError):
        fresh.votes = 4
    assert pickle.loads(known) == Sent(3) == copy.deepcopy(Sent(3))  # noqa: S301 - our own


def test_a_class_that_makes_its_own_instances_is_finished_at_once():
    @dataclass(eq=False)
    class FailedError(Exception):
        code: int

    assert not unfinished(FailedError)
    assert FailedError(3).code == 3


def test_threads_that_come_together_all_find_it_finished():
    for _ in range(50):
        base, derived, _ = classes(dataclass)
        start, made = threading.Barrier(8), []

        def make(cls, start=start, made=made):
            start.wait()
            made.append(cls(1))

        threads = [threading.Thread(target=make, args=(cls,)) for cls in [base, derived] * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 8
        assert sum(each == base(1) for each in made) == 4
