"""The distinct operands of an executable, so that stages judge and write each of them once.

Most operands are patterns that several instructions share. A stage that meets them by number needs
no table by identity, whose lookups take longer than what is done with the result.
"""

from __future__ import annotations

from itertools import chain, count
from typing import NamedTuple

from nkic.neff.records import Executable, InstructionRecord, OperandRecord


class Operands(NamedTuple):
    """`values` are None and then the distinct objects in order of first use.

    `references` has for each stream the indices in `values` of all operands of its items.
    """

    values: list[OperandRecord]
    references: list[list[int]]


def operands_of(executable: Executable) -> Operands:
    """Return the operands of the executable, which must stay alive as long as they are used."""
    streams = [
        list(chain.from_iterable([i[1] for i in stream.items if type(i) is InstructionRecord]))
        for stream in executable.streams
    ]
    distinct: dict[int, OperandRecord] = {id(None): None}
    for operands in streams:
        distinct.update(zip(map(id, operands), operands, strict=True))
    number_of = dict(zip(distinct, count(), strict=False)).__getitem__
    references = [list(map(number_of, map(id, operands))) for operands in streams]
    return Operands(list(distinct.values()), references)
