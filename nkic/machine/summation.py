"""In which order, and in which type, an instruction adds up what it accumulates.

    exact     in float64, rounded once to float32 at the end
    float32   in float32, first to last, rounded after every addition
    pairwise  in float32, neighbours in pairs, then pairs of pairs, and so on; one that is left
              over at the end of a row joins the next row

A device's additions are float32 according to the documentation; their order is published for
no instruction (docs/fidelity.md has what was measured). "float32" and "pairwise" are two that a
device might have: where they differ from "exact" by more than a kernel bears, it depends on
the order.
"""

from __future__ import annotations

from typing import Literal

SummationOrder = Literal["exact", "float32", "pairwise"]
ORDERS: tuple[SummationOrder, ...] = ("exact", "float32", "pairwise")
