"""Test how a row is checked: the order of errors, errors that are reported together, and no
exceptions.

The rules themselves are tested in test_rule_page.py.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.diagnostics import codes
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Attribute, AttributeKind, Facts, Operand, Register, Row, Tile
from nkic.machine.operators import ACTIVATIONS, ALU, NO_ENGINE
from nkic.machine.rules import signature, violations
from nkic.machine.targets import TARGETS, TRN1, TRN2, TRN3, Buffer, Engine, Target
from tests.harness.bless import compare_file, short_sum
from tests.unit.instances import LEGAL, Settings, facts_of, tile
from tests.unit.machine.instructions.changes import VARIANTS, Change, answer, changes_of, said_of

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


@pytest.mark.parametrize("name", ["nc_matmul", "nc_matmul_mx"])
def test_an_array_position_is_shown_as_a_row_and_a_column(name: str) -> None:
    """Even if a file has more numbers, which another rule refuses."""
    moving = LEGAL[name]["moving"]._replace(indexed=True)
    row, facts = facts_of(name, TRN3, moving=moving, tile_position=(64, 0, 1))
    (said,) = [v.message for v in violations(row, facts) if "array position" in v.message]
    assert "at the array position (64, 0), which" in said


COUNT = "multiplication by 1 / the number of elements"
FOLD = (
    "nl.{} is a function of a tensor; the instruction for it is nisa.tensor_reduce(dst=…, op=nl.{}"
)


@pytest.mark.parametrize(
    ("name", "setting", "said"),
    [
        ("tensor_reduce", "sum", "nl.sum is a function of a tensor; its operator is nl.add"),
        (
            "tensor_reduce",
            "mean",
            "nl.mean is a function of a tensor; its operator is nl.add; "
            "multiply the sum by 1 / the number of elements",
        ),
        ("activation", "max", f"{FOLD.format('max', 'maximum')}, data=…, axis=1)"),
        ("activation", "mean", f"{FOLD.format('mean', 'add')}, data=…, axis=1), and a {COUNT}"),
        (
            "activation",
            "add",
            "nl.add takes two values and goes with nisa.tensor_tensor or nisa.tensor_scalar; "
            "functions take one",
        ),
        (
            "tensor_tensor",
            "exp",
            "nl.exp takes one value and goes with nisa.activation; operators take two",
        ),
        ("tensor_tensor", "divide", NO_ENGINE["divide"]),
        ("activation", "mod", NO_ENGINE["mod"]),
        ("tensor_tensor", "other", "pass an operator as `op`"),
        ("activation", "other", "pass an activation function as `op`"),
    ],
)
def test_what_is_no_operator_of_an_instruction_has_advice(
    name: str, setting: str, said: str
) -> None:
    row, facts = facts_of(name, op=setting)
    (found,) = violations(row, facts)
    assert (found.slug, found.help) == ("argument-kind", said)


@pytest.mark.parametrize(
    ("share", "said"), [(0.0, []), (0.4, []), (-0.4, []), (0.5, ["fill-value"])]
)
def test_a_fill_value_is_the_lowest_float32_once_it_is_rounded(
    share: float, said: list[str]
) -> None:
    """`share` is the distance from it, in units of its last place."""
    value = -float(np.finfo(np.float32).max) + share * 2.0**104
    row, facts = facts_of("range_select", on_false_value=value)
    assert [one.slug for one in violations(row, facts)] == said


@pytest.mark.parametrize(
    ("op", "value", "reverse", "said"),
    [
        ("left_shift", 0, False, None),
        ("left_shift", 15, False, None),
        ("left_shift", 16, False, "shift-count"),
        ("left_shift", -1, False, "shift-count"),
        ("left_shift", 16, True, None),
        ("left_shift", 65536, True, "constant-overflow"),
        ("bitwise_and", 65535, False, None),
        ("bitwise_and", 65536, False, "constant-overflow"),
        ("bitwise_and", -32768, False, None),
        ("bitwise_and", -32769, False, "constant-overflow"),
        ("add", 65536, False, None),  # in float32
    ],
)
@pytest.mark.parametrize("stage", [0, 1])
def test_a_constant_that_loses_bits_is_told(
    op: str, value: int, reverse: bool, said: str | None, stage: int
) -> None:
    tiles = dict.fromkeys(("dst", "data"), tile("int16[128, 512]"))
    first = {"op0": "bitwise_or", "operand0": 1} if stage else {}
    second = {f"op{stage}": op, f"operand{stage}": value, f"reverse{stage}": reverse}
    row, facts = facts_of("tensor_scalar", **tiles, **(first | second))
    found = row.warn(facts, 1) if row.warn else None
    assert (found and found.slug) == said
    assert found is None or found.operand == f"operand{stage}"


@pytest.mark.parametrize(("value", "said"), [((1 << 32) - 1, None), (1 << 32, "constant-overflow")])
def test_a_constant_that_loses_bits_is_told_in_address_arithmetic(
    value: int, said: str | None
) -> None:
    """All operands are 32-bit integers, and one is a vector."""
    tiles = dict.fromkeys(("dst", "data"), WORDS) | {"operand0": tile("int32[128, 1]")}
    row, facts = facts_of("tensor_scalar", **tiles, op0="add", op1="add", operand1=value)
    found = row.warn(facts, 1) if row.warn else None
    assert (found and found.slug) == said


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("bits", [32, 64])
def test_a_number_beside_a_scalar_fits_into_its_bits(name: str, bits: int) -> None:
    limit = 1 << 31
    for value, fits in ((-limit - 1, False), (-limit, True), (limit - 1, True), (limit, False)):
        row, facts = facts_of("scalar_compute", integer=f"int{bits}", **{name: value})
        said = [(one.operand, one.message) for one in violations(row, facts)]
        text = f"scalar_compute: `{name}` is {value}; the scalar has 32 bits with sign"
        assert said == ([] if fits or bits == 64 else [(name, text)])


@pytest.mark.parametrize("shape", [(1, 2), (2, 1)])
def test_one_offset_moves_a_whole_pattern(shape: tuple[int, int]) -> None:
    moved = tile("float32[128, 512]", dynamic=True, offsets=tile(f"int32[{shape[0]}, {shape[1]}]"))
    row, facts = facts_of("tensor_copy", src=moved)
    (found,) = violations(row, facts)
    assert f"the `scalar_offset` of `src` is {[*shape]}, but must be [1, 1]" in found.message


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


# ------------------------------------------------------------------------------------------------
# Find the limits of every row by trying every size, type and value.
#
# tests/data/limits has a page for each row. Its lines show the range in which a change is legal
# and the error beyond it, with a checksum of the words of all messages and of their help.
# `NKIC_BLESS=1` writes the pages again; read the difference as a change of what kernels may do.

PAGES = Path(__file__).parents[3] / "data/limits"
LIMIT_WORDS = 12  # the number of legal values of one attribute that are combined with other changes


class Asked:
    """The answers of one row on one target, by the changed property."""

    def __init__(self, row: Row, target: Target, variant: Settings) -> None:
        self.row, self.target, self.variant = row, target, variant
        self.answers: dict[str, list[tuple[Change, str]]] = defaultdict(list)
        self.words: set[tuple[str, ...]] = set()  # of all messages
        for change in changes_of(row, variant):
            self.answers[change.what].append((change, self.said(change.changes)))

    def said(self, changes: Settings) -> str:
        found = said_of(self.row, self.target, {**self.variant, **changes})
        self.words |= {(one.slug, one.operand, one.message, one.help) for one in found}
        return answer(found)

    def lines(self) -> Iterator[str]:
        """Return a line for each kind of change: runs of numbers, and other values, by answer."""
        for what, found in self.answers.items():
            yield f"{what}: {'; '.join(_by_answer(found))}"
        yield f"with other attributes: {self._together()}"
        told = "".join(f"{' | '.join(words)}\n" for words in sorted(self.words))
        yield f"in {len(self.words)} messages: {short_sum(told)}"

    def _together(self) -> str:
        """Count the answers when a legal attribute or engine is combined with another change."""
        names = {"engine", *self.row.attribute_index}
        settings = [
            change
            for what in sorted(names & self.answers.keys())
            for change in [c for c, said in self.answers[what] if said == "legal"][:LIMIT_WORDS]
        ]
        others = [
            next(run)[0]
            for found in self.answers.values()
            for _, run in groupby(found, key=lambda pair: pair[1])
        ]
        said = Counter(
            self.said({**one.changes, **other.changes})
            for one in settings
            for other in others
            if one.what != other.what
        )
        return ", ".join(f"{count} {word}" for word, count in sorted(said.items()))


def _by_answer(found: list[tuple[Change, str]]) -> Iterator[str]:
    if all(change.value.lstrip("-").isdigit() for change, _ in found):
        for said, run in groupby(found, key=lambda pair: pair[1]):
            values = [change.value for change, _ in run]
            yield f"{values[0]}{f' to {values[-1]}' if len(values) > 1 else ''} {said}"
        return
    values_of: dict[str, list[str]] = defaultdict(list)
    for change, said in found:
        values_of[said].append(change.value)
    for said, values in values_of.items():
        yield f"{' '.join(values)}: {said}"


def usual_target(row: Row, variant: Settings) -> Target:
    """Return trn2, or trn3 if trn2 does not have the row."""
    return TRN2 if not said_of(row, TRN2, variant) else TRN3


def page(row: Row) -> Iterator[str]:
    """Return the usual instance, then the variants: all lines for one target, and the different
    lines for the others.
    """
    targets = [target for target in TARGETS.values() if target.generation >= row.generation]
    for what, variant in {"": {}, **VARIANTS.get(row.name, {})}.items():
        first = usual_target(row, variant)
        others = [target for target in targets if target is not first]
        usual = [*Asked(row, first, variant).lines()]
        yield from (f"{first.name} {what}".rstrip(), *_indented(usual))
        for target in others:
            lines = [*Asked(row, target, variant).lines()]
            yield f"{target.name} {what}".rstrip()
            yield from _indented(line for line in lines if line not in usual)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


@pytest.mark.parametrize("name", LEGAL)
def test_limits_are_where_they_were(name: str) -> None:
    path, found = PAGES / f"{name}.txt", "".join(f"{line}\n" for line in page(ROWS[name]))
    compare_file(path, found)


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_are_legal(name: str) -> None:
    row = ROWS[name]
    found = {what: answer(said_of(row, TRN3, variant)) for what, variant in VARIANTS[name].items()}
    assert found == dict.fromkeys(VARIANTS[name], "legal")


def test_every_page_is_of_a_row() -> None:
    assert {path.stem for path in PAGES.iterdir()} == set(ROWS)


# ------------------------------------------------------------------------------------------------
# Find the warnings of rows by trying every legal size, type and value.
#
# Tests vary one tile, and all tiles of one type together: tests/data/warnings.txt. Errors where the
# cores of a rendezvous differ are in tests/data/rendezvous.txt. `NKIC_BLESS=1` writes both files
# again.

WARNING_PAGES = Path(__file__).parents[3] / "data"
# Rows with warnings that need more than the values with which all attributes are tried.
GROUPS = ([[0, 1]], [[0, 4]], [[0, 16]], [[0, 1, 2, 3]], [[0, 4], [1, 5]], [[0, 8], [4, 12]],
          [[*range(4)]], [[*range(8)]], [[*range(16)]], [[*range(1, 17)]], [[*range(12)]],
          [[*range(0, 64, 4)]], [[*range(64)]])  # fmt: skip
WARNING_PAIRS = (
    [[0, 1]],
    [[0, 1], [1, 0]],
    [[0, 1], [1, 2]],
    [[0, 1], [1, 2], [2, 0]],
    [[2, 1], [1, 0]],
)
SECOND = {"sendrecv": {"send_to_rank": 0, "recv_from_rank": 0}}  # of the second core
WIDE = ("float32", "int32")
WARNING_NUMBERS = (2**24 - 1, 2**24, 2**24 + 1, 2**25 + 2, -(2**24) - 1, 16777217.0, 3)


def further(row: Row) -> Iterator[Change]:
    """Return changes that only these rows need."""
    values = {"replica_group": GROUPS, "source_target_pairs": WARNING_PAIRS}
    for name in values.keys() & row.attribute_index.keys():
        for value in values[name]:
            frozen = tuple(map(tuple, value))
            yield Change(name, repr(value) if len(value[0]) < 5 else f"{value[0][0]} and "
                         f"{len(value[0]) - 1} more", {name: frozen})  # fmt: skip
    for name in {"operand0", "operand1"} & row.operand_index.keys():
        for number in WARNING_NUMBERS:
            yield Change(name, repr(number), {name: number})


def asked(row: Row, target: Target, changes: Settings) -> Facts | None:
    """Return the facts of the changed row, or nothing if the change is not legal."""
    if said_of(row, target, changes):
        return None
    chosen = changes.get("engine")
    operands = {name: v for name, v in changes.items() if not isinstance(v, Engine)}
    engine = chosen if isinstance(chosen, Engine) else None
    return facts_of(row.name, target, engine, **operands)[1]


def changes(row: Row) -> list[Change]:
    """Return changes of types, memories, numbers and attributes."""
    named = {*row.attribute_index, *row.operand_index, "engine", "all of"}
    named |= {f"{name} {what}" for name in row.operand_index for what in ("of", "in", "is")}
    found = [*changes_of(row), *further(row)]
    return sorted((one for one in found if one.what in named), key=lambda one: one.what)


def lines(row: Row, target: Target) -> Iterator[str]:
    """Return, for each change with a warning, its subject and the number of cores."""
    assert row.warn is not None
    found, words = defaultdict[str, list[str]](list), set[str]()
    wide = [one for one in changes(row) if one.what == "all of" and one.value in WIDE]
    for base in (Change("", "", {}), *wide):
        for change in changes(row):
            facts = asked(row, target, {**base.changes, **change.changes})
            said = [row.warn(facts, cores) for cores in (1, 2)] if facts is not None else []
            words |= {f"{one.operand} {one.message} {one.help}\n" for one in said if one}
            which = " and ".join(str(1 + at) for at, one in enumerate(said) if one)
            if which:
                found[f"{base.value} {change.what}, cores {which}".strip()].append(change.value)
    yield f"{target.name} {row.name}: {len(words)} texts, {short_sum(''.join(sorted(words)))}"
    for what, values in found.items():
        yield f"  {what}: {len(values)}, {' '.join(values[:6])}"


def warning_page(row: Row) -> Iterator[str]:
    """Return all lines for the first target, and the different lines for the others."""
    usual: list[str] = []
    for target in (one for one in TARGETS.values() if one.generation >= row.generation):
        head, *rest = lines(row, target)
        yield from (head, *(line for line in rest if line not in usual))
        usual = usual or rest


def test_rows_warn_where_they_did() -> None:
    found = [
        line for name in LEGAL if ROWS[name].warn is not None for line in warning_page(ROWS[name])
    ]
    compare_file(WARNING_PAGES / "warnings.txt", "".join(f"{line}\n" for line in found))


def differing(row: Row, target: Target) -> Iterator[str]:
    """Return the errors by the difference between two cores, and the errors for one core alone."""
    rule = row.rendezvous_rule
    first, second = asked(row, target, {}), asked(row, target, SECOND.get(row.name, {}))
    if rule is None or first is None or second is None:
        return
    said = defaultdict[str, list[str]](list)
    for change in (Change("nothing", "", {}), *changes(row)):
        one = asked(row, target, change.changes)
        other = asked(row, target, {**SECOND.get(row.name, {}), **change.changes})
        for cores in ((first, other), (one, second), (one, other)):
            both = [facts for facts in cores if facts is not None]
            found = rule(both) if len(both) == 2 else None
            text = f"{found.slug} {found.operand}: {found.message}; {found.help}" if found else "-"
            said[change.what].append(text)
    alone = rule((first,))
    yield f"{target.name} {row.name}: alone {alone.message if alone else '-'}"
    for what, texts in said.items():
        if wrong := [text for text in texts if text != "-"]:
            yield f"  {what}: {len(wrong)} of {len(texts)} wrong, {short_sum(''.join(texts))}"


def test_cores_that_differ_are_told_what_they_were() -> None:
    found = []
    for row in (ROWS[name] for name in LEGAL if ROWS[name].rendezvous_rule is not None):
        known: set[str] = set()
        for target in (one for one in TARGETS.values() if one.generation >= row.generation):
            found += [line for line in differing(row, target) if line not in known]
            known = {*found}
    compare_file(WARNING_PAGES / "rendezvous.txt", "".join(f"{line}\n" for line in found))


# ------------------------------------------------------------------------------------------------
# Test which ranks devices connect: the cases of warnings for all_to_all_v and similar
# collectives.

Groups = tuple[tuple[int, ...], ...]


@pytest.mark.parametrize(
    ("target", "cores", "groups", "said"),
    [
        (TRN1, 1, ((0, 32), (1, 33)), ""),
        (TRN1, 1, ((0, 1),), "ranks 0 and 1 exchange data, but on trn1"),
        (TRN2, 2, ((0, 4, 8),), ""),
        (TRN2, 2, ((0, 4, 6),), "ranks 4 and 6 exchange data, but on trn2"),
        (TRN2, 1, ((0, 8),), ""),
        (TRN2, 1, ((0, 4),), "ranks 0 and 4 exchange"),
        (TRN3, 2, ((0, 1, 2, 3), (4, 5, 6, 7)), ""),
        (TRN3, 2, ((1, 2, 3, 4),), ""),  # an example of the documentation
        (TRN3, 2, ((0, 1, 2),), "the ranks [0, 1, 2] are not whole devices of 4 consecutive"),
        (TRN3, 2, ((0, 2, 1, 3),), "consecutive ranks, which all_to_all_v needs on trn3"),
        (TRN3, 1, ((0, 1, 2, 3),), "a rank has 1 core, but on trn3 all_to_all_v needs 2"),
    ],
)
def test_groups_of_all_to_all_v(target: Target, cores: int, groups: Groups, said: str) -> None:
    warn = ROWS["all_to_all_v"].warn
    assert warn is not None
    found = warn(facts_of("all_to_all_v", target, replica_group=groups)[1], cores)
    assert (found is None) == (not said) and (found is None or said in found.message)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (((0, 1), (1, 0)), ""),
        (((0, 1), (2, 3), (1, 2), (3, 0)), ""),
        (((1, 0),), "rank 0 receives and does not send"),
    ],
)
def test_permutations_are_rings(pairs: Groups, said: str) -> None:
    warn = ROWS["collective_permute"].warn
    assert warn is not None
    found = warn(facts_of("collective_permute", TRN2, source_target_pairs=pairs)[1], 2)
    assert (found is None) == (not said) and (found is None or said in found.message)
