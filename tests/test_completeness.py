"""Every row of the instruction table has everything that a row needs, and nothing else has it."""

import ast
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import nkic.simulate  # registers the semantics  # noqa: F401
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Attribute, AttributeKind, Row
from nkic.machine.operators import ALU
from nkic.machine.rules import violations
from nkic.simulate.plans import RENDEZVOUS, SEMANTICS
from tests.bench.instructions import NUMPY, prepared, target_of
from tests.harness import trees
from tests.harness.instruction import Call
from tests.harness.model import Given, facts
from tests.harness.scenes import whole
from tests.models import EXCHANGES, MODELS
from tests.property.test_instructions import MANY, drawn, scene
from tests.test_layers import FILES, ROOT

PROJECT = Path(__file__).resolve().parents[1]


def test_rows_and_semantics_are_the_same_set() -> None:
    assert sorted([*SEMANTICS, *RENDEZVOUS]) == sorted(ROWS)
    assert sorted(RENDEZVOUS) == sorted(name for name, row in ROWS.items() if row.is_rendezvous)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_says_what_it_does_and_where_that_is_known_from(name: str) -> None:
    row = ROWS[name]
    assert row.doc.endswith(".") and len(row.doc) > 10
    assert row.source.startswith(("nki.isa", "nki.language", "nki.collectives", "NKI"))


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_has_a_model(name: str) -> None:
    """A row has a property test: tests/models implements its documentation in NumPy."""
    known = (name in MODELS) + (name in EXCHANGES)
    assert known == 1, f"write a model of {name}: docs/add-an-instruction.md, step 3"


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_parameter_is_tested_by_value(name: str) -> None:
    """The property test tries several values, and the model reads the parameter or lists it in
    `silent`.
    """
    instances: list[tuple[Call, str]] = []
    problem = ""
    for seed in range(MANY):
        target, calls = drawn(name, seed)
        instances += [(call, target) for call in calls if call.row == name]
        if seed in (9, 19, 29, MANY - 1) and not (problem := _untested(ROWS[name], instances)):
            return
    raise AssertionError(problem)


def _untested(row: Row, instances: list[tuple[Call, str]]) -> str:
    """Return a description of each parameter that no instance tests."""
    for attribute in row.attributes:
        legal, seen = _legal(attribute, instances), {c.values[attribute.name] for c, _ in instances}
        enough = (
            len(seen) > 1
            if attribute.kind is AttributeKind.ALU and len(legal) > 1
            else seen >= legal
        )
        if not enough:
            return f"{row.name}: `{attribute.name}` is never {sorted(map(str, legal - seen))}"
    unread = {*row.operand_index, *row.attribute_index} - {*MODELS[row.name].silent}
    for call, target in instances:
        if unread:
            unread -= _read(call, target)
    return f"the model of {row.name} does not read {sorted(unread)}" if unread else ""


def _read(call: Call, target: str) -> set[str]:
    """Return the names that the model reads; names that it writes count, too."""
    given = Given(call, target, dict.fromkeys(("$0", "$1", "$2"), 0))
    return {*MODELS[call.row].meaning(given)} | given.used


def _legal(attribute: Attribute, instances: list[tuple[Call, str]]) -> set[object]:
    """Return the legal values over all instances: of flags, choices and operators."""
    known: dict[AttributeKind, tuple[object, ...]] = {
        AttributeKind.BOOL: (False, True),
        AttributeKind.CHOICE: attribute.choices,
        AttributeKind.ALU: tuple(ALU),
    }
    found: set[object] = set()
    for call, target in instances[:15]:
        for value in {*known.get(attribute.kind, ())} - found:
            changed = call._replace(values={**call.values, attribute.name: value})
            if not violations(ROWS[call.row], facts(changed, target)):
                found.add(value)
    return found


@pytest.mark.parametrize("name", sorted(EXCHANGES))
def test_every_parameter_of_meetings_takes_several_values(name: str) -> None:
    """Choices and flags take all their values, other parameters at least two."""
    seen: dict[str, set[object]] = {a.name: set() for a in ROWS[name].attributes}
    for seed in range(40):
        for call in (c for core in scene(name, seed)[1].cores for c in core if c.row == name):
            for parameter in seen:
                seen[parameter].add(whole(call).values[parameter])
    for attribute in ROWS[name].attributes:
        may = {*attribute.choices} or (
            {False, True} if attribute.kind is AttributeKind.BOOL else set()
        )
        may -= NEVER.get((name, attribute.name), set())
        found = seen[attribute.name]
        only_one = len(may) == 1 or (name, attribute.name) in ALWAYS_0
        assert found >= may and len(found) >= 2 - only_one, attribute.name


# Combinations that a rule rejects.
NEVER: dict[tuple[str, str], set[object]] = {
    ("all_gather_v", "has_rdispls"): {True},
    ("all_gather_v_trigger", "has_rdispls"): {True},
}
ALWAYS_0 = {("all_to_all", "collective_dim"), ("reduce_scatter", "collective_dim")}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_is_measured(name: str) -> None:
    """`make bench` has a line for it: tests/bench/instructions.py."""
    assert name in NUMPY, f"say in NUMPY what {name} is in NumPy"
    NUMPY[name]()
    prepared(name, 1, target_of(ROWS[name]).name)()


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_is_documented(name: str) -> None:
    page = (PROJECT / "docs/instructions.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page or f"## {name}" in page


# Files that may name rows: the instruction table, the semantics and the error bounds, kernel
# source, and the tables of versions.
SPEAKS_OF_ROWS = (
    *("machine/", "simulate/semantics/", "simulate/bounds.py", "language/stdlib/", "stubs/"),
    "simulate/field/rules.py",
    *("language/versions.py", "language/beta1/"),  # other forms of instructions
    "compiler/check.py",  # what to write instead
    "report/probes.py",  # a microkernel for each
)
# Names of rows that have other meanings too: operators, generators of data, options of `run`,
# parameters of every instruction, fields of nkic's own classes, a device's names of engines, and
# one kind of dependence.
HOMONYMS = {
    "interpret/library/itertools.py": {"accumulate"},
    "api/running.py": {"accumulate"},
    "cli/nki_run/options.py": {"iota"},
    "report/figures.py": {"accumulate"},
    "judge/reference.py": {"iota"},
    "judge/schemas.py": {"axes", "integer"},
    "language/enums.py": {"perf_mode"},
    "language/provide.py": {"tile_size"},
    "language/isa.py": {"scalar_compute"},  # which no kernel calls by name
    "migrate/edits.py": {"accumulate"},  # the name of an advice
    "report/measured.py": {"activation"},
    "simulate/field/decide.py": {"iota"},
    "simulate/field/functions.py": {"reciprocal"},
    "simulate/field/intervals.py": {"reciprocal"},
    "simulate/field/tensors.py": {"dropout", "reciprocal"},  # torch's
    "simulate/field/traced.py": {"reciprocal"},  # NumPy's
    "simulate/shadow.py": {"shuffle_mask"},
    "simulate/inputs.py": {"iota"},
    "specialise/outputs.py": {"dge_mode"},  # as the binder spells it
    "specialise/numpy.py": {"integer"},
    "simulate/numerics/elementwise.py": {"reciprocal"},
}
COMMON = {"axis", "cores", "engine", "n", "op", "pattern", "priority", "value"}


def _words(text: str) -> set[str]:
    """Return the strings of a file, each as a whole."""
    return _strings(ast.walk(ast.parse(text)))


def _strings(nodes: Iterable[ast.AST]) -> set[str]:
    found = (node for node in nodes if isinstance(node, ast.Constant))
    return {node.value for node in found if isinstance(node.value, str)}


def _of_rows() -> set[str]:
    return {*ROWS, *(a.name for row in ROWS.values() for a in row.attributes)} - COMMON


def test_no_stage_knows_a_row_by_name() -> None:
    """Every property of an instruction that a stage needs is a field of its row."""
    words = {path.relative_to(ROOT).as_posix(): _strings(trees.nodes(path)) for path in FILES}
    named = {name: found for name, text in words.items() if (found := text & _of_rows())}
    assert {n: found for n, found in named.items() if not n.startswith(SPEAKS_OF_ROWS)} == HOMONYMS


def test_names_of_rows_are_seen() -> None:
    text = 'ROWS["memset"]\ndef f(i):\n    return i.attribute("oob_mode") or "a memset of zeros"\n'
    assert _words(text) & _of_rows() == {"memset", "oob_mode"}


def test_a_row_asks_its_own_attributes() -> None:
    with pytest.raises(ValueError, match=r"memset: no such attributes: .'oob_mode'."):
        replace(ROWS["memset"], skips=("oob_mode", "skip"))
    copy = ROWS["dma_copy"]
    skip = [a.default if a.name != "oob_mode" else "skip" for a in copy.attributes]
    assert copy.has_setting(copy.skips, skip) and not ROWS["memset"].has_setting(None, ())
    assert not copy.has_setting(copy.skips, [a.default for a in copy.attributes])


def test_a_number_becomes_the_type_of_one_of_its_rows_operands() -> None:
    assert ROWS["memset"].constants == (("value", "dst"),)
    assert ROWS["activation"].constants == (("bias", ""), ("scale", ""))
    assert ROWS["iota"].constants == ()  # its offset is an integer, which a register may hold
    value = replace(ROWS["memset"].attributes[0], into="src")
    with pytest.raises(ValueError, match=r"memset: no such operands: .'src'."):
        replace(ROWS["memset"], attributes=(value,))
