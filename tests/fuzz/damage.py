"""Bytes of a file damaged by chance."""

from numpy.random import Generator

_STRUCTURE = b"\",;{}[]()\n\r\t :-+.e0'\\\x00\xff"


def struck(data: bytes, rng: Generator) -> bytes:
    """A few bytes changed, most of them at the head or the foot, where structure is."""
    damaged = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 4]))):
        size = len(damaged)
        if not size:
            break
        near = int(min(rng.integers(0, size), rng.integers(0, 400)))
        place = (near, size - 1 - near, int(rng.integers(0, size)))[rng.integers(0, 3)]
        span = int(rng.integers(1, 12))
        match rng.integers(0, 9):
            case 0 | 1 | 2:
                damaged[place] = rng.integers(0, 256)
            case 3:
                damaged[place] ^= 1 << int(rng.integers(0, 8))
            case 4:
                del damaged[place : place + span]
            case 5:
                damaged[place] = _STRUCTURE[rng.integers(0, len(_STRUCTURE))]
            case 6:
                other = int(rng.integers(0, size))
                damaged[place:place] = damaged[other : other + 8 * span]
            case 7:
                damaged[place : place + span] = (b"\x00", b"\xff", b"\x7f")[rng.integers(3)] * span
            case _:
                if rng.integers(0, 3) == 0:
                    del damaged[place:]
    return bytes(damaged)
