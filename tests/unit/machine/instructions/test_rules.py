"""Test how a row is checked: the order of errors, errors that are reported together, and no
exceptions.

The rules themselves are tested in test_rule_page.py.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.diagnostics import codes
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Attribute, AttributeKind, Facts, Operand, Register, Tile
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.machine.rules import signature, violations
from nkic.machine.targets import TARGETS, TRN1, TRN2, Buffer, Engine, Target
from tests.unit.instances import LEGAL, facts_of, tile

PSUM = tile("float32[128, 512] psum")
WORDS = tile("int32[128, 512]")


@pytest.mark.parametrize("name", LEGAL)
@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_the_legal_instance_is_legal_where_there_is_the_instruction(
    name: str, target: Target
) -> None:
    row, facts = facts_of(name, target)
    found = [violation.slug for violation in violations(row, facts)]
    assert found == (["needs-newer-target"] if row.generation > target.generation else [])


def test_every_row_has_an_instance() -> None:
    assert set(LEGAL) == set(ROWS)


def test_a_newer_instruction_is_refused_before_its_operands_are() -> None:
    row, facts = facts_of("tensor_copy", src=tile("float32[200, 1]"))
    (found,) = violations(replace(row, generation=4), facts)
    assert found.message == "tensor_copy: needs trn3 or newer; the target is trn2"
    assert found.slug == "needs-newer-target"


def test_several_rules_can_be_broken_at_once() -> None:
    row, facts = facts_of(
        "tensor_tensor", op="abs", data1=PSUM, data2=tile("float32[64, 512] psum")
    )
    slugs = [violation.slug for violation in violations(row, facts)]
    assert slugs == ["partition-mismatch", "both-in-psum", "operator-not-supported"]


def test_signatures_tell_apart_what_rules_tell_apart() -> None:
    def key(**changes: Any) -> Any:
        return signature(*facts_of("memset", dst=WORDS, **changes))

    assert key(value=2) == key(value=2)
    assert len({key(value=2), key(value=2.0), key(value=3)}) == 3
    assert signature(*facts_of("memset", TRN1)) != signature(*facts_of("memset", TRN2))


# Rules never raise: a file can contain anything.

NUMBERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([0, 1, 2, 64, 128, 1 << 80]),
    st.floats(),
)
SIZES = st.one_of(st.integers(-1, 600), st.sampled_from([0, 1, 2, 32, 64, 128, 512, 1 << 40]))
TILES = st.builds(
    Tile,
    st.sampled_from(Buffer),
    st.sampled_from(list(DTYPES.values())),
    st.sampled_from([-1, 0, 7, 32, 64, 96, 127, 128, 1 << 40]),
    st.sampled_from([-5, 0, 1, 16, 32, 64, 128, 129]),
    st.lists(st.tuples(SIZES, SIZES), max_size=5).map(tuple),
    st.booleans(),
    st.booleans(),
)
INTS = st.lists(st.sampled_from([-1, 0, 1, 2, 3, 32, 64, 128, 1 << 62]), max_size=5).map(tuple)
PAIRS = st.lists(st.tuples(SIZES, SIZES), max_size=5).map(tuple)
VALUES = {
    AttributeKind.ALU: st.sampled_from([*ALU, "nonsense"]),
    AttributeKind.ACTIVATION: st.sampled_from([*ACTIVATIONS, "nonsense"]),
    AttributeKind.BOOL: st.booleans(),
    AttributeKind.INT: st.integers(-(1 << 63), 1 << 63),
    AttributeKind.INT32: st.integers(-(1 << 31), 1 << 31),
    AttributeKind.NUMBER: NUMBERS,
    AttributeKind.PATTERN: PAIRS,
    AttributeKind.INTS: INTS,
    AttributeKind.GROUPS: st.lists(INTS, max_size=3).map(tuple),
    AttributeKind.NUMBERS: st.lists(NUMBERS, max_size=3).map(tuple),
    AttributeKind.TEXT: st.text(max_size=5),
}


def operand_values(name: str, operand: Operand) -> st.SearchStrategy[Any]:
    """Draw values mostly close to the legal instance, so that the row's own rules are reached."""
    legal = LEGAL[name].get(operand.name, operand.default)
    if not isinstance(legal, Tile):
        return st.one_of(st.just(legal), NUMBERS, st.just(Register(0)), TILES)
    near = st.builds(
        legal._replace,
        buffer=st.sampled_from(sorted(operand.buffers, key=lambda b: b.value)),
        dtype=st.sampled_from(list(DTYPES.values())),
        dims=st.one_of(st.just(legal.dims), PAIRS),
        dynamic=st.booleans(),
        indexed=st.booleans(),
    )
    return st.one_of(st.just(legal), near, near, TILES, NUMBERS)


def attribute_values(name: str, attribute: Attribute) -> st.SearchStrategy[Any]:
    legal = st.just(LEGAL[name].get(attribute.name, attribute.default))
    if attribute.kind is AttributeKind.CHOICE:
        return st.one_of(legal, st.sampled_from([*attribute.choices, "nonsense", 3]))
    return st.one_of(legal, VALUES[attribute.kind], st.none())


@pytest.mark.parametrize("name", LEGAL)
@given(data=st.data())
@settings(max_examples=10)
def test_rules_are_total(name: str, data: st.DataObject) -> None:
    row = ROWS[name]
    facts = Facts(
        data.draw(st.sampled_from(list(TARGETS.values()))),
        {o.name: data.draw(operand_values(name, o)) for o in row.operands},
        {a.name: data.draw(attribute_values(name, a)) for a in row.attributes},
        data.draw(st.one_of(st.none(), st.sampled_from(row.engines), st.sampled_from(Engine))),
    )
    for violation in violations(row, facts):
        assert violation.message.startswith(f"{name}: ")
        assert violation.slug in codes()
    hash(signature(row, facts))
