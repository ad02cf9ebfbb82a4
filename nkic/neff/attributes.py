"""Checks of attribute values in files, shared by reader, writer and assembler."""

from __future__ import annotations

import math
import struct
from typing import Any

from nkic.machine.arguments import allowed, is_number
from nkic.machine.operands import Attribute

_NAN = struct.pack(">d", math.nan)


def canonical(value: float) -> float:
    """Return `value`, with any NaN replaced by the one that files may hold."""
    return math.nan if value != value else value


def is_canonical(value: Any) -> bool:
    """Return whether `value` is not a NaN other than the canonical one."""
    return type(value) is not float or value == value or struct.pack(">d", value) == _NAN


def is_operand_number(value: Any) -> bool:
    """Return whether an operand can be `value`: a canonical 64-bit integer or float."""
    return is_number(value) and is_canonical(value)


def is_allowed(attribute: Attribute, value: Any) -> bool:
    """Return whether `value` is canonical and of the attribute's kind. Rules may reject it."""
    return allowed(attribute, value) and is_canonical(value)
