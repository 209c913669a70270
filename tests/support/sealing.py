"""Ledgers and records with other fields, as if pate had written them."""

import hashlib
import json


def sealed(data):
    """The file with the checksum that belongs to its fields."""
    content = {name: value for name, value in data.items() if name != "checksum"}
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return json.dumps(content | {"checksum": hashlib.sha256(plain.encode()).hexdigest()})
