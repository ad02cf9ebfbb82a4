"""The DMA engines' sum of tiles: at fixed addresses, or accumulated by gather or scatter."""

from __future__ import annotations

from dataclasses import replace

from nkic.base.profiles import Profile
from nkic.machine.clock import dma_costs
from nkic.machine.constraints import wrong_operator
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions import dma_rules
from nkic.machine.instructions.dma import OUT_OF_BOUNDS, SKIPPED
from nkic.machine.instructions.parts import alu, optional, result, source
from nkic.machine.memory import Buffer
from nkic.machine.operands import SBUF_OR_HBM, Attribute, AttributeKind, Row, Violation
from nkic.machine.operators import ALU

SOURCES = tuple(f"src{i}" for i in range(16))


def only_sums(facts: Facts) -> Violation | None:
    """`reduce_op` is add."""
    op = facts.attributes["reduce_op"]
    return None if op == "add" else wrong_operator("reduce_op", ALU[op], "add")


def ones(facts: Facts) -> Violation | None:
    """There are as many `scales` as sources, and each is 1."""
    scales = facts.attributes["scales"]
    if scales is None:
        return None
    count = len(facts.tiles) - 1
    if len(scales) != count:
        text = f"`scales` has {len(scales)} numbers and `srcs` has {count} tiles"
    elif wrong := [scale for scale in scales if scale != 1]:
        text = f"`scales` has {wrong[0]:g}; each must be 1.0"
    else:
        return None
    hint = "leave out `scales`, and scale with `nisa.tensor_scalar`"
    return Violation("dma-mode", text, "scales", hint)


def same_elements(facts: Facts) -> Violation | None:
    """Every source has as many elements as dst; shapes may differ."""
    dst = facts.tile("dst")
    for name, tile in facts.tiles.items():
        if tile.elements != dst.elements:
            return Violation(
                "element-count-mismatch",
                f"`{name}` has {tile.elements} elements {list(tile.shape)} and `dst` has "
                f"{dst.elements} {list(dst.shape)}; they must be equal",
                name,
                "slice both to the same number of elements",
            )
    return None


def fixed_places(facts: Facts) -> Violation | None:
    """There are no run-time offsets, except vectors of indices: descriptors are precomputed."""
    for name, tile in facts.tiles.items():
        if tile.dynamic and not tile.indexed:
            return Violation(
                "dma-mode",
                f"`{name}` has a run-time offset, but the addresses must be known at compile time",
                name,
                f"copy `{name}` with `nisa.dma_copy`, and add with `nisa.tensor_tensor`",
            )
    return None


def modify(facts: Facts) -> Violation | None:
    """A vector of indices is used as HBM[indices] += SBUF, or SBUF += HBM[indices]."""
    indexed = [name for name, tile in facts.tiles.items() if tile.indexed]
    if not indexed:
        return _only_with_indices(facts)
    dst, *sources = facts.tiles.values()
    if len(sources) != 2:
        text = f"takes 2 sources with a `vector_offset`, not {len(sources)}"
    elif not facts.attributes["unique_indices"]:
        text = "needs unique_indices=True with a `vector_offset`"
    elif sum(tile.indexed for tile in sources) != 1:
        text = "takes a `vector_offset` on exactly one of the sources"
    elif dst not in sources:
        text = (
            "with a `vector_offset` adds to the former content of `dst`: one of the sources "
            "must be `dst`"
        )
    else:
        return _in_sbuf(facts)
    return _bad_modify(text)


def _only_with_indices(facts: Facts) -> Violation | None:
    if facts.attributes["oob_mode"] != "skip":
        return None
    text = "`oob_mode` is skip, but no source has a `vector_offset` that could be out of bounds"
    return Violation("dma-mode", text, "oob_mode", "leave out `oob_mode`")


def _in_sbuf(facts: Facts) -> Violation | None:
    fixed = [name for name, tile in facts.tiles.items() if not tile.indexed]
    wrong = next((name for name in fixed if facts.tile(name).buffer is not Buffer.SBUF), "")
    return _bad_modify(f"needs `{wrong}` in sbuf, the other side of a gather") if wrong else None


def _bad_modify(text: str) -> Violation:
    hint = "pass srcs=[dst, data]: dst indexed and data in SBUF, or the other way round"
    return Violation("dma-mode", text, "dst", hint)


ROWS = (
    Row(
        name="dma_compute",
        opcode=12,
        skips=SKIPPED,
        doc="dst = the sum of srcs, element by element in the order of the dimensions, in float32.",
        parameters=("dst", "srcs", "reduce_op", "scales", "unique_indices", "oob_mode", "name"),
        operands=(
            result(buffers=SBUF_OR_HBM, indexed=True),
            source(SOURCES[0], buffers=SBUF_OR_HBM, indexed=True),
            source(SOURCES[1], buffers=SBUF_OR_HBM, indexed=True, optional=True, default=None),
            *(
                source(name, buffers=SBUF_OR_HBM, optional=True, default=None)
                for name in SOURCES[2:]
            ),
        ),
        attributes=(
            alu("reduce_op"),
            optional("scales", AttributeKind.NUMBERS),
            Attribute("unique_indices", AttributeKind.BOOL, default=True, since=Profile.NKI_0_3),
            replace(OUT_OF_BOUNDS, since=Profile.NKI_0_4),
        ),
        engines=(Engine.DMA,),
        cost=dma_costs.dma_computing,
        rules=(
            only_sums,
            ones,
            dma_rules.computed_types,
            same_elements,
            fixed_places,
            modify,
            dma_rules.gathering,
            dma_rules.one_index_each,
            dma_rules.whole_rows,
        ),
        spread="srcs",
        source="nki.isa.dma_compute",
    ),
)
