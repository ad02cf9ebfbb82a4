"""Which instructions do the work of others in passing, and how a kernel calls them: what advice and
the edits that follow it know about rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkic.machine.operands import Row

TRANSFER, ACTIVATION, PAIRWISE = "dma_copy", "activation", "tensor_tensor"
PRODUCT, REDUCTION = "nc_matmul", "tensor_reduce"
WITH_SCALARS, WITH_SCALAR_AND_TILE = "tensor_scalar", "scalar_tensor_tensor"
NEGATED = "-operand0"  # the negated operand of a tensor_scalar, which a kernel has to make
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


# The keywords of an activation that do the work of a tensor_scalar before it, by its operators.
FOLDED = {
    ("multiply", ""): {"scale": "operand0"},
    ("multiply", "add"): {"scale": "operand0", "bias": "operand1"},
    ("add", ""): {"bias": "operand0"},
    ("subtract", ""): {"bias": NEGATED},
}
COMMUTATIVE = ("add", "multiply", "maximum", "minimum")


def joined(
    first: str, made: Attributes, second: str, then: Attributes, reads: str
) -> tuple[str, dict[str, str]] | None:
    """Return the instruction that does at once what a tensor_scalar and the next one do, whose
    operand `reads` is its result, and the keywords that it has in place of the second's: those of
    the first, or those of the second after "then ". Returns None if no instruction does both.

    `made` and `then` are the keywords of both, as values or as a kernel has them.
    """

    made, then = (
        {name: value for name, value in given.items() if str(value) not in ("None", "False")}
        for given in (made, then)
    )

    def operator(given: Attributes, name: str) -> str:
        return str(given.get(name, "")).rpartition(".")[2]

    op0, op1, op = operator(made, "op0"), operator(made, "op1"), operator(then, "op")
    if first != WITH_SCALARS or "reverse0" in made or "reverse0" in then:
        return None
    if reads != "data" and second != PAIRWISE:
        return None
    if second == ACTIVATION:
        is_plain = "bias" not in then and str(then.get("scale", 1)) in ("1", "1.0")
        found = FOLDED.get((op0, op1)) if is_plain else None
        return (ACTIVATION, {"data": "data"} | found) if found is not None else None
    taken = {"data": "data", "op0": "op0", "operand0": "operand0"}
    if op1 or operator(then, "op1"):
        return None
    if second == WITH_SCALARS:
        return WITH_SCALARS, taken | {"op1": "then op0", "operand1": "then operand0"}
    other = {"data1": "data2", "data2": "data1"}.get(reads)
    if second != PAIRWISE or other is None or (reads == "data2" and op not in COMMUTATIVE):
        return None
    return WITH_SCALAR_AND_TILE, taken | {"op1": "then op", "operand1": f"then {other}"}


def joining(
    found: tuple[str, Mapping[str, str]], made: Mapping[str, str], then: Mapping[str, str], isa: str
) -> str:
    """Return the call of the instruction that `joined` found, from the keywords of both calls."""
    name, taken = found
    keywords = {"dst": then.get("dst", "…")} if name == WITH_SCALAR_AND_TILE else dict(then)
    for key, value in taken.items():
        given = then if value.startswith("then ") else made
        keywords[key] = given.get(value.removeprefix("then "), "…")
    return f"{isa}.{name}({', '.join(f'{key}={value}' for key, value in keywords.items())})"


def negating(made: Mapping[str, str], isa: str) -> list[str]:
    """Return the lines that make the negated operand of a tensor_scalar with these keywords, in a
    tile of the name that `made` has for it.
    """
    name, operand, ops = made[NEGATED], made["operand0"], made["op0"].rpartition(".")[0]
    return [
        f"{name} = {ops}.ndarray({operand}.shape, {ops}.float32)",
        f"{isa}.{WITH_SCALARS}(dst={name}, data={operand}, op0={ops}.multiply, operand0=-1.0)",
    ]
