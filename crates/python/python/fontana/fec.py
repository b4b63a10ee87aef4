"""RaptorQ (RFC 6330) in memory: an object and its packets.

>>> oti, packets = fontana.fec.encode(b"content" * 1000, symbol_size=1000, repair=3)
>>> len(packets)
10
>>> fontana.fec.decode(oti, packets[3:]) == b"content" * 1000
True
"""

from __future__ import annotations

from collections.abc import Iterable

from . import _fontana
from .session import raising

__all__ = ["decode", "encode"]


def encode(data: bytes, *, symbol_size: int = 1280, repair: int = 0) -> tuple[bytes, list[bytes]]:
    """The parameters of an object (OTI), and its packets: all source symbols, and this many repair
    symbols of each block.
    """
    with raising():
        return _fontana.encode(data, symbol_size, repair)


def decode(oti: bytes, packets: Iterable[bytes]) -> bytes | None:
    """The object. None: the packets are not enough."""
    with raising():
        return _fontana.decode(oti, packets)
