"""Descriptors of transfers that are prepared before the run, so that no engine makes them.

`--disable-dge` of the vendor's compiler asks for it, and so do the public harnesses of Beta 1's
kernels: published times of those with many small loads are less than triggers of the hardware would
take. That every kernel of Beta 1 is compiled so, unless `dge` says otherwise, is assumed.
"""

from __future__ import annotations

from nkic.ir.program import Instruction
from nkic.ir.tensors import View
from nkic.language.trace import Trace


def prepare(trace: Trace) -> None:
    """Have descriptors prepared for each transfer without a mode and without run-time addresses."""
    for body in trace.bodies:
        for index, item in enumerate(body):
            if isinstance(item, Instruction) and _is_open(item):
                attributes = list(item.attributes)
                attributes[item.row.attribute_index["dge_mode"]] = "none"
                body[index] = item._replace(attributes=tuple(attributes))


def _is_open(item: Instruction) -> bool:
    """Return whether the mode of the transfer is left open, and its addresses are known."""
    if "dge_mode" not in item.row.attribute_index or item.attribute("dge_mode") != "unknown":
        return False
    views = (operand for operand in item.operands if isinstance(operand, View))
    return all(view.dynamic is None for view in views)
