"""What is refused, and in which words."""

import pytest

from pate_cli.core.errors import OutputError


def refusal(error, call, *args, **kwargs):
    """The text with which a call is refused; one printable line."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert str(caught.value).isprintable()
    return str(caught.value)


def unreserved(fails, path, kind=OutputError, *, force=False):
    """The text with which an output is refused before anything is written."""
    text, _ = fails(kind, lambda out: out.reserve(path), force=force)
    return str(text)
