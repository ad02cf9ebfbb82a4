"""Which instructions do the work of others in passing, and how a kernel calls them: what advice and
the edits that follow it know about rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkic.machine.operands import Row

TRANSFER, ACTIVATION, PAIRWISE = "dma_copy", "activation", "tensor_tensor"
PRODUCT, REDUCTION = "nc_matmul", "tensor_reduce"
Attributes = Mapping[str, Any]

# The ways to trigger a transfer: the engine, the attributes, and the keywords of the call.
TRIGGERS: tuple[tuple[str, dict[str, str], str], ...] = (
    (
        "scalar",
        {"engine": "scalar", "dge_mode": "hwdge"},
        "engine=nisa.engine.scalar, dge_mode=nisa.dge_mode.hwdge",
    ),
    ("gpsimd", {"engine": "unknown", "dge_mode": "swdge"}, "dge_mode=nisa.dge_mode.swdge"),
)


def in_turn(counter: str) -> str:
    """Return the keywords that let scalar and sync trigger a transfer in turn."""
    engine = f"engine=nisa.engine.scalar if {counter} % 2 else nisa.engine.sync"
    return f"{engine}, dge_mode=nisa.dge_mode.hwdge"


def is_addition(row: Row, attributes: Attributes) -> bool:
    return row.name == PAIRWISE and str(attributes["op"]) == "add"


def is_multiplication(row: Row, attributes: Attributes) -> bool:
    """Whether it multiplies two tiles element by element."""
    return row.name == PAIRWISE and str(attributes["op"]) == "multiply"


def is_sum_of_columns(row: Row, attributes: Attributes) -> bool:
    return row.name == REDUCTION and str(attributes["op"]) == "add" and not attributes["negate"]


def may_add_up(row: Row, attributes: Attributes) -> bool:
    """Whether it could also add up its results, and does not."""
    return row.name == ACTIVATION and attributes["reduce_op"] is None


def adding_up(given: Mapping[str, str], total: str, isa: str, ops: str) -> str:
    """Return the call of an activation with these keywords, or in place of a square, that also adds
    up its results. `isa` and `ops` are the kernel's names of nki.isa and of the operators' module.
    """
    keywords = dict(given)
    if "data1" in keywords:
        keywords = {"dst": given["dst"], "op": f"{ops}.square", "data": given["data1"]}
    keywords |= {
        "reduce_op": f"{ops}.add",
        "reduce_res": total,
        "reduce_cmd": f"{isa}.reduce_cmd.reset_reduce",
    }
    words = ", ".join(f"{name}={value}" for name, value in keywords.items())
    return f"{isa}.{ACTIVATION}({words})"
