"""Numbers of votes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.core.errors import ParameterError
from pate_cli.core.words import MechanismName
from pate_cli.mechanisms import Amount, MechanismChoice


@pytest.mark.parametrize(
    ("given", "votes"),
    [
        *((200, 200.0), (1, 1.0), (0, 0.0), (-3.5, -3.5), ("200", 200.0), (" 1e2 ", 100.0)),
        *(("80%", 200.0), ("0.4%", 1.0), ("120 %", 300.0), ("0.8 votes", 0.8), ("1vote", 1.0)),
    ],
)
def test_amounts(given, votes):
    assert Amount.of("threshold", given).votes(250) == votes


@given(st.floats(0.0, 1.0, exclude_min=True, exclude_max=True))
def test_what_could_be_a_share_is_refused_with_both_readings(value):
    for given_value in (value, repr(value)):
        with pytest.raises(ParameterError, match=r"`sigma1` .* votes, or .*% of the teachers\?"):
            Amount.of("sigma1", given_value)
    assert Amount.of("sigma1", f"{value!r} votes").votes(7) == value


@pytest.mark.parametrize("text", ["", "abc", "80 percent", "%", "8 0", None, [3], "1,5"])
def test_what_is_no_number(text):
    with pytest.raises(ParameterError, match="`sigma2` must be a number of votes, or a share"):
        Amount.of("sigma2", text)


def test_a_choice_takes_shares_and_keeps_its_units():
    choice = MechanismChoice(
        MechanismName.CONFIDENT, {"threshold": "80%", "sigma1": "0.5 votes", "sigma2": 20}
    )
    again = choice.among(MechanismName.CONFIDENT).affording(3)
    for teachers, threshold in ((250, 200.0), (10, 8.0)):
        built = again.build(teachers=teachers, classes=3, queries=5, delta=1e-5)
        assert (built.threshold, built.sigma1, built.sigma2) == (threshold, 0.5, 20.0)
    with pytest.raises(ParameterError, match="80% of the teachers"):
        MechanismChoice(MechanismName.CONFIDENT, {"threshold": 0.8})
