"""Find the warnings of rows by trying every legal size, type and value.

Tests vary one tile, and all tiles of one type together: tests/data/warnings.txt. Errors where the
cores of a rendezvous differ are in tests/data/rendezvous.txt. `NKIC_BLESS=1` writes both files
again.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from nkic.machine.instructions import ROWS
from nkic.machine.operands import Facts, Row
from nkic.machine.targets import TARGETS, Engine, Target
from tests.harness.bless import compare_file, short_sum
from tests.unit.instances import LEGAL, Settings, facts_of
from tests.unit.machine.instructions.changes import Change, changes_of, said_of

PAGES = Path(__file__).parents[3] / "data"
# Rows with warnings that need more than the values with which all attributes are tried.
GROUPS = ([[0, 1]], [[0, 4]], [[0, 16]], [[0, 1, 2, 3]], [[0, 4], [1, 5]], [[0, 8], [4, 12]],
          [[*range(4)]], [[*range(8)]], [[*range(16)]], [[*range(1, 17)]], [[*range(12)]],
          [[*range(0, 64, 4)]], [[*range(64)]])  # fmt: skip
PAIRS = ([[0, 1]], [[0, 1], [1, 0]], [[0, 1], [1, 2]], [[0, 1], [1, 2], [2, 0]], [[2, 1], [1, 0]])
SECOND = {"sendrecv": {"send_to_rank": 0, "recv_from_rank": 0}}  # of the second core
WIDE = ("float32", "int32")
NUMBERS = (2**24 - 1, 2**24, 2**24 + 1, 2**25 + 2, -(2**24) - 1, 16777217.0, 3)


def further(row: Row) -> Iterator[Change]:
    """Return changes that only these rows need."""
    values = {"replica_group": GROUPS, "source_target_pairs": PAIRS}
    for name in values.keys() & row.attribute_index.keys():
        for value in values[name]:
            frozen = tuple(map(tuple, value))
            yield Change(name, repr(value) if len(value[0]) < 5 else f"{value[0][0]} and "
                         f"{len(value[0]) - 1} more", {name: frozen})  # fmt: skip
    for name in {"operand0", "operand1"} & row.operand_index.keys():
        for number in NUMBERS:
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


def page(row: Row) -> Iterator[str]:
    """Return all lines for the first target, and the different lines for the others."""
    usual: list[str] = []
    for target in (one for one in TARGETS.values() if one.generation >= row.generation):
        head, *rest = lines(row, target)
        yield from (head, *(line for line in rest if line not in usual))
        usual = usual or rest


def test_rows_warn_where_they_did() -> None:
    found = [line for name in LEGAL if ROWS[name].warn is not None for line in page(ROWS[name])]
    compare_file(PAGES / "warnings.txt", "".join(f"{line}\n" for line in found))


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
    compare_file(PAGES / "rendezvous.txt", "".join(f"{line}\n" for line in found))
