"""Which values an attribute may have in a file. Shared by reader, writer and assembler."""

from __future__ import annotations

import math
import struct
from typing import Any

from nkic.machine.arguments import allowed, is_number
from nkic.machine.operands import Attribute

_NAN = struct.pack(">d", math.nan)


def canonical(value: float) -> float:
    """`value`, with the one NaN that files may hold in place of any other."""
    return math.nan if value != value else value


def is_canonical(value: Any) -> bool:
    """`value` is not one of the other NaNs."""
    return type(value) is not float or value == value or struct.pack(">d", value) == _NAN


def is_operand_number(value: Any) -> bool:
    """A number that an operand can be: canonical, an integer of 64 bits or a float."""
    return is_number(value) and is_canonical(value)


def is_allowed(attribute: Attribute, value: Any) -> bool:
    """`value` is canonical and of the kind that `attribute` takes. Rules may still refuse it."""
    return allowed(attribute, value) and is_canonical(value)
