import pytest

from pate_cli.errors import VoteError
from pate_cli.votes import open_votes


def test_an_empty_name_is_refused_rather_than_read_as_this_folder():
    with pytest.raises(VoteError, match="the name of the votes is empty"), open_votes(""):
        pass
