"""An address may hold a user, a password or a key; what is shown of it never does.

Two ways to look for them: in one name, whatever letters it holds, and in a text in which names may
stand, where a blank ends each. The first is for whoever shows a name; the second stands behind
every message, for what another library says of an address in words of its own.
"""

from __future__ import annotations

import re
from typing import Final

# A path has lost the second slash, and may have gained a folder in front.
_ROOT: Final = r"(?<=[A-Za-z0-9+.-]{2}):(/+)"
_NAME: Final = re.compile(_ROOT + r"(.*)", re.DOTALL)
_IN_TEXT: Final = re.compile(_ROOT + r"([^\s/]\S*)")
_HOST: Final = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::[0-9]*)?")
# A quotation mark, or what ends a sentence, is no part of a query.
_END: Final = re.compile(r"""['"`)\]}>.,:;]*$""")
_LOCAL: Final = "file"


def without_credentials(name: str) -> str:
    """A path or an address without user, password, query and fragment; any other name as it is."""
    return _NAME.sub(lambda found: f":{found[1]}{_bare(found, found[2])}", name, count=1)


def withheld(text: str) -> str:
    """A text, with the credentials of every address in it left out."""
    return _IN_TEXT.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    end = _END.search(found[2])
    tail = "" if end is None else end[0]
    return f":{found[1]}{_bare(found, found[2].removesuffix(tail))}{tail}"


def _bare(found: re.Match[str], rest: str) -> str:
    """Return the rest of an address behind its slashes, without what may be secret."""
    local = found.string.startswith(_LOCAL, max(0, found.start() - len(_LOCAL)))
    # Of a path no folder is a host, but one that holds a password.
    if not local or len(found[1]) == 2 or re.match("[^/]*:[^/]*@", rest):
        rest = _without_user(rest)
    return re.split("[?#]", rest, maxsplit=1)[0]


def _without_user(rest: str) -> str:
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, host = authority.rpartition("@")
    if not at and _HOST.fullmatch(host):
        return rest
    if at and ":" not in user:
        return rest[len(user) + 1 :]
    # A password may hold a slash or a question mark that should have been escaped.
    _, at, after = rest.rpartition("@")
    return after if at else rest[len(authority) :]
