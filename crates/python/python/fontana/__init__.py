"""Bulk data to any number of hosts at once, by multicast.

>>> import pathlib, tempfile
>>> here = pathlib.Path(tempfile.mkdtemp())
>>> _ = (here / "a.bin").write_bytes(b"content")
>>> with fontana.send([here / "a.bin"], to="239.255.77.72:7772", interface="127.0.0.1") as sender:
...     report = fontana.recv(sender.ticket, to=here / "got", interface="127.0.0.1").join()
>>> report["verdict"], (here / "got" / "a.bin").read_bytes()
('complete', b'content')
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Union

from . import _fontana, errors, fec, safetensors
from .errors import Error, NotComplete
from .session import Receiver, Sender, raising

__version__: str = _fontana.__version__
__all__ = [
    "Error",
    "NotComplete",
    "Receiver",
    "Sender",
    "errors",
    "fec",
    "recv",
    "safetensors",
    "send",
]

Path = Union[str, "os.PathLike[str]"]


def send(
    paths: Iterable[Path],
    *,
    to: str | None = None,
    interface: str | None = None,
    rate: int | None = None,
    hop_limit: int | None = None,
    name: str | None = None,
    push: int | None = None,
    tsi: int | None = None,
    memory: int | None = None,
    order: str | Sequence[tuple[int, int]] | None = None,
) -> Sender:
    """Starts a sender of files and directories.

    to: the group and port, or a host and port ("239.255.77.1:7701").
    interface: the network interface, by its name, address or network.
    rate: bits per second at most, headers included (100 Mbit/s).
    hop_limit: the TTL or hop limit of multicast (1: this network only).
    name: the name that receivers give a single file.
    push: send everything once, and this many repair symbols per thousand. None: until it is
    stopped.
    tsi: the number of the session.
    memory: bytes of memory at most.
    order: the parts of a single file, which are sent one after the other: where each begins and
    ends. "safetensors": the layers of a model in that format. None: all of it advances evenly.
    """
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    parts = [] if order is None else _parts(paths, order)
    keywords = {
        "to": to,
        "interface": interface,
        "rate": rate,
        "hop_limit": hop_limit,
        "name": name,
        "push": push,
        "tsi": tsi,
        "memory": memory,
        "parts": parts,
    }
    with raising():
        return Sender(_fontana.send([os.fspath(path) for path in paths], keywords))


def _parts(paths: list[Path], order: str | Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    if len(paths) != 1:
        raise errors.Argument("order: it is that of the parts of a single file", 2)
    if not isinstance(order, str):
        return [(int(start), int(stop)) for start, stop in order]
    if order != "safetensors":
        raise errors.Argument('order: "safetensors", or where parts begin and end', 2)
    return [part for layer in safetensors.layers_of(paths[0]) for part in layer]


def recv(
    ticket: str | None = None,
    *,
    to: Path | None = None,
    into: Any = None,
    staging: Path | None = None,
    group: str | None = None,
    interface: str | None = None,
    overwrite: bool = False,
    skip_existing: bool = False,
    timeout: float | None = None,
    silence: float | None = None,
    max_bytes: int | None = None,
    memory: int | None = None,
) -> Receiver:
    """Starts a receiver into a directory, or of a session's only file into a buffer.

    ticket: what the sender shows. None: the first session on the group.
    to: the directory, which is created if it does not exist (".").
    into: a writable buffer: bytearray, memoryview, array of numpy, tensor of torch in memory. Bytes
    are there as they arrive.
    ``Receiver.written`` is how many are verified, from the beginning, and ``Receiver.wait`` waits
    for some.
    staging: with ``into``, a directory for repair symbols until their blocks are verified
    (/dev/shm, which is memory).
    group: without a ticket, the group and port.
    interface: the network interface, by its name, address or network.
    overwrite: replace files that exist.
    skip_existing: receive only what the files do not contain already.
    timeout: give up after this many seconds.
    silence: give up if nothing has arrived for this many seconds (60). 0: never.
    max_bytes: bytes that a session may have at most.
    memory: bytes of memory at most.
    """
    if into is not None and to is not None:
        raise errors.Argument("to: it goes into a directory or into a buffer, not both", 2)
    # A tensor is no buffer, but its array is one.
    into = into.numpy() if hasattr(into, "numpy") else into
    view = None if into is None else memoryview(into)
    if view is not None and (view.readonly or not view.c_contiguous):
        raise errors.Argument("into: the buffer must be writable and contiguous", 2)
    directory = to if view is None else staging
    keywords = {
        "ticket": ticket,
        "group": group,
        "interface": interface,
        "overwrite": overwrite,
        "skip_existing": skip_existing,
        "timeout": timeout,
        "silence": silence,
        "max_bytes": max_bytes,
        "memory": memory,
    }
    with raising():
        path = None if directory is None else os.fspath(directory)
        return Receiver(_fontana.receive(path, None if view is None else view.cast("B"), keywords))
