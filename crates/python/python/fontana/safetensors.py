"""The layers of a model in a file of the format safetensors, and where their bytes are.

>>> import json
>>> names = {"head": (8, 12), "layer.1.a": (0, 4), "layer.0.a": (4, 8)}
>>> header = {name: {"dtype": "F32", "shape": [1], "data_offsets": at} for name, at in names.items()}
>>> text = json.dumps(header).encode()
>>> file = len(text).to_bytes(8, "little") + text + bytes(12)
>>> start = fontana.safetensors.header_size(file[:8])
>>> [[(a - start, b - start) for a, b in layer] for layer in fontana.safetensors.layers(file[:start])]
[[(8, 12)], [(4, 8)], [(0, 4)]]
"""

from __future__ import annotations

import json
import os
import re
from typing import Union

from .errors import Argument

__all__ = ["header_size", "layers", "layers_of", "tensors"]

Span = tuple[int, int]
Bytes = Union[bytes, bytearray, memoryview]

# The format allows no longer header.
_LONGEST = 100_000_000


def header_size(beginning: Bytes) -> int:
    """Bytes before the first tensor, as the first eight bytes of a file say."""
    length = int.from_bytes(bytes(beginning[:8]), "little")
    if len(beginning) < 8 or not 2 <= length <= _LONGEST:
        raise Argument("order: it is no file of the format safetensors", 2)
    return 8 + length


def tensors(header: Bytes) -> dict[str, Span]:
    """Where the bytes of each tensor begin and end in the file."""
    start = header_size(header)
    try:
        described = json.loads(bytes(header[8:start]))
        found = {
            name: (start + int(tensor["data_offsets"][0]), start + int(tensor["data_offsets"][1]))
            for name, tensor in described.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise Argument(f"order: the header of the file is wrong: {error}", 2) from error
    if not all(start <= begin <= end for begin, end in found.values()):
        raise Argument("order: a tensor of the file ends before it begins", 2)
    return found


def layers(header: Bytes) -> list[list[Span]]:
    """Where the bytes of each layer are: at first of tensors without a number in their names (those
    of embeddings, and of the head), then by the first number.
    """
    grouped: dict[int, list[Span]] = {}
    for name, span in tensors(header).items():
        number = re.search("[0-9]+", name)
        grouped.setdefault(int(number.group()) if number else -1, []).append(span)
    return [_joined(sorted(grouped[number])) for number in sorted(grouped)]


def layers_of(path: str | os.PathLike[str]) -> list[list[Span]]:
    """The header of a file, as the first layer, and its layers."""
    with open(path, "rb") as file:
        beginning = file.read(8)
        size = header_size(beginning)
        header = beginning + file.read(size - 8)
    return [[(0, size)], *layers(header)]


def _joined(spans: list[Span]) -> list[Span]:
    """Spans that touch are one."""
    joined: list[Span] = []
    for start, stop in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        elif start < stop:
            joined.append((start, stop))
    return joined
