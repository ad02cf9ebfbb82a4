"""Record the cost of every row at many sizes, types and addresses.

tests/data/costs has a page for each row. test_costs.py and test_profiles.py compare the formulas
with public figures; these pages cover the values in between. `NKIC_BLESS=1` writes the pages again:
a difference means another clock.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Row, Tile
from nkic.machine.rules import violations
from nkic.machine.targets import TARGETS, Engine, Target
from nkic.machine.timing import timing
from tests.harness.bless import compare_file
from tests.unit.instances import LEGAL, Settings, facts_of
from tests.unit.machine.instructions.changes import Change, changes_of

PAGES = Path(__file__).parents[2] / "data/costs"
SIZES = (1, 2, 7, 15, 63, 64, 65, 127, 128, 129, 511, 512, 513, 2048)
TYPES = ("float32", "bfloat16", "float8_e5m2", "uint16")


def wanted(change: Change) -> bool:
    """Choose some of each kind from the many sizes and types."""
    if change.value.isdigit() and not change.what.endswith("dimensions"):
        return int(change.value) in SIZES
    return change.value not in DTYPES or change.value in TYPES


def shaped(row: Row) -> Iterator[Change]:
    """Return all tiles of one type, in sizes and steps that select fast modes or not."""
    tiles = {n: v for n, v in LEGAL[row.name].items() if type(v) is Tile and v.dims}
    long = {name: tile for name, tile in tiles.items() if tile.dims[-1][1] > 1}
    for dtype in TYPES:
        typed = {name: tile._replace(dtype=DTYPES[dtype]) for name, tile in tiles.items()}
        for step in (1, 2, 4, 5, 8, 9):
            for free in (1, 65, 512, 513):
                dims = ((step, free),)
                made = {name: typed[name]._replace(dims=dims) for name in long}
                yield Change(f"all {dtype} by steps of {step}", f"{free}", {**typed, **made})
    for name in long:
        strided = {n: t._replace(dims=((9, t.dims[-1][1]),)) for n, t in long.items() if n != name}
        yield Change("far apart, all but", name, strided)


def cost(row: Row, target: Target, engine: Engine, changes: Settings) -> str:
    """Return the nanoseconds that the stream is occupied, and the latency of the result.

    For a transfer, also return its start, its share of all DMA engines, and how long its triggering
    engine is occupied. Return nothing if the instruction is not legal.
    """
    operands = {name: value for name, value in changes.items() if not isinstance(value, Engine)}
    _, facts = facts_of(row.name, target, engine, **operands)
    if violations(row, facts):
        return ""
    hold, latency, start, pool, trigger, by, *_ = timing(row, facts, engine)
    issued = f"{hold / 1000:g}+{latency / 1000:g}"
    if engine is not Engine.DMA:
        return issued
    return f"{issued} {start / 1000:g} {pool / 1000:g} {by.value} {trigger / 1000:g}"


def page(row: Row) -> Iterator[str]:
    """Return, by target and engine, the legal instance and the variants with other costs."""
    changes = [*filter(wanted, changes_of(row)), *shaped(row)]
    for target in TARGETS.values():
        for engine in row.engines:
            usual = cost(row, target, engine, {})
            costs = [(change, cost(row, target, engine, change.changes)) for change in changes]
            other = [(change, text) for change, text in costs if text and text != usual]
            if usual or other:
                yield f"{target.name} {engine.value}: {usual or '-'}"
            for what, found in groupby(other, key=lambda pair: pair[0].what):
                yield f"  {what}: {'; '.join(_runs([*found]))}"


def _runs(found: list[tuple[Change, str]]) -> Iterator[str]:
    for text, run in groupby(found, key=lambda pair: pair[1]):
        values = [change.value for change, _ in run]
        yield f"{' '.join(values)}: {text}"


@pytest.mark.parametrize("name", LEGAL)
def test_costs_are_what_they_were(name: str) -> None:
    path, found = PAGES / f"{name}.txt", "".join(f"{line}\n" for line in page(ROWS[name]))
    compare_file(path, found)


def test_every_page_is_of_a_row() -> None:
    assert {path.stem for path in PAGES.iterdir()} == set(ROWS)
