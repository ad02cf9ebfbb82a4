"""Test what each row's rules say of changed instances: tests/data/rules.txt.

Below the name of a row, a case has a line with the target and the engine, if they are not trn2 and
the row's own, and with what is changed; then the code and the message, unless the instance is
legal.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nkic.machine.instructions import ROWS
from nkic.machine.instructions.tensor import matmul_operations
from nkic.machine.operands import Facts, Register
from nkic.machine.rules import violations
from nkic.machine.targets import TARGETS, TRN1, TRN2, TRN3, Engine, Target
from nkic.machine.tiles import start_partitions
from tests.unit.instances import COLUMN, Case, T, beside, facts_of, tile

PAGE = Path(__file__).parents[3] / "data/rules.txt"
NAMES = {
    **{"tile": tile, "Register": Register, "nan": float("nan"), "inf": float("inf")},
    **{"T": T, "COLUMN": COLUMN, "WORDS": tile("int32[128, 512]")},
    "PSUM": tile("float32[128, 512] psum"),
}
CASE = re.compile(r"  ((?:trn\d|[a-z]+)(?: [a-z]+)?(?=:))?:? ?(.*)(?:\n    ([\w-]+): (.*))?\n")


def cases(page: str) -> Iterator[Case]:
    """Return the cases of a page; every line belongs to one."""
    for part in re.split(r"^(?=\S)", page, flags=re.M)[1:]:
        name, _, body = part.partition("\n")
        found = list(CASE.finditer(body))
        assert "".join(match[0] for match in found) == body, name
        for where, changes, slug, message in (match.groups("") for match in found):
            target, engine = TRN2, None
            for word in (where or "").split():
                target = TARGETS.get(word, target)
                engine = None if word in TARGETS else Engine(word)
            values = eval(f"dict({'' if changes == 'as it is' else changes})", NAMES)
            yield Case(name, values, message or "", slug or "", target, engine)


@pytest.mark.parametrize("case", list(cases(PAGE.read_text("utf-8"))), ids=str)
def test_rule(case: Case) -> None:
    case.holds()


@pytest.mark.parametrize(
    ("partitions", "starts"),
    [
        (1, (0, 32, 64, 96)),
        (32, (0, 32, 64, 96)),
        (33, (0, 64)),
        (64, (0, 64)),
        (65, (0,)),
        (128, (0,)),
    ],
)
def test_where_accesses_may_start(partitions: int, starts: tuple[int, ...]) -> None:
    assert start_partitions(partitions) == starts


def test_what_a_shuffle_keeps_must_have_been_written() -> None:
    for mask, reads in (((0,) * 32, False), ((*(255,) * 31, 0), True)):
        row, facts = facts_of("nc_stream_shuffle", shuffle_mask=mask)
        assert row.access_of(row.operands[0], facts).reads is reads


@pytest.mark.parametrize("name", ["tensor_scalar_reduce", "tensor_scalar_cumulative"])
def test_only_reduce_depends_on_the_accumulators(name: str) -> None:
    for command, reads in (("reset_reduce", ()), ("reduce", ("vector.accumulator",))):
        effects = ROWS[name].effects(facts_of(name, TRN2, reduce_cmd=command)[1])
        assert effects == (reads, ("vector.accumulator",))


@pytest.mark.parametrize("engine", [Engine.VECTOR, Engine.GPSIMD])
def test_each_engine_has_generators_of_its_own(engine: Engine) -> None:
    state = (f"{engine.value}.random",)
    for name, effects in (
        ("rng", (state, state)),
        ("rand_set_state", ((), state)),
        ("rand_get_state", (state, ())),
    ):
        row, facts = facts_of(name, TRN3, engine)
        assert row.effects(facts) == effects


COSTS: list[tuple[str, Target, dict[str, Any], int]] = [
    ("tensor_scalar_reduce", TRN2, {}, 512 + 64),
    ("select_reduce", TRN1, {}, 2 * 512),
    ("range_select", TRN2, {}, 512),
    ("nc_find_index8", TRN2, {}, 512),
    ("nc_stream_shuffle", TRN2, {"dst": COLUMN, "src": COLUMN}, 8),
    ("exponential", TRN3, {}, 512 // 4),
    ("activate2", TRN3, {"reduce_res": COLUMN}, 512 + 119 + 64),
    # 128 indices of 1 element of 4 bytes: C = (28 + 4) / 4 / min(1, 1) = 8.
    ("local_gather", TRN2, {}, 150 + 128 // 8),
    # 128 indices of 4 elements: C = (28 + 16) / 16 / min(1, 4) = 2.75.
    ("local_gather", TRN2, {"num_elem_per_idx": 4, "dst": T}, 151 + round(512 / 2.75)),
    ("nc_n_gather", TRN2, {"dst": T, "indices": tile("uint32[128, 512]")}, 150 + 512),
    ("rng", TRN2, {}, 512),
    ("rng", TRN3, {}, 512 // 4),
]


@pytest.mark.parametrize(("name", "target", "changes", "cycles"), COSTS)
def test_costs(name: str, target: Target, changes: dict[str, Any], cycles: int) -> None:
    row, facts = facts_of(name, target, **changes)
    facts = Facts(target, facts.operands, facts.attributes, row.choose(facts))
    engine = row.choose(facts)
    assert row.cost(facts).interval == cycles + beside(target, engine, changes)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 2 * 128 * 64 * 512),
        ({"is_transpose": True}, 0),
        (
            {
                "stationary": tile("float8_e4m3[128, 2, 64]"),
                "moving": tile("float8_e4m3[128, 2, 512]"),
                "perf_mode": "double_row",
            },
            2 * 2 * 128 * 64 * 512,
        ),
    ],
)
def test_operations_of_a_product(changes: dict[str, Any], count: int) -> None:
    """A multiplication and an addition for each of K x M x N pairs; none if data only move."""
    _, facts = facts_of("nc_matmul", **changes)
    assert matmul_operations(facts) == count


def test_operations_of_elements_of_four() -> None:
    _, facts = facts_of("nc_matmul_mx", TRN3)
    assert matmul_operations(facts) == 2 * 4 * 128 * 64 * 512


def test_tiles_of_other_operands_start_where_engines_do() -> None:
    row, facts = facts_of("quantize_mx", TRN3, None, src=tile("float16[32, 512]", start=4))
    assert [v.operand for v in violations(row, facts)] == ["src"]


def test_costs_of_microscaling() -> None:
    """Four elements a cycle.

    A product of 512 rows takes the time of a bfloat16 product of 128, and starts 4 cycles after the
    preceding one.
    """
    row, facts = facts_of("quantize_mx", TRN3, None, src=tile("bfloat16[64, 4096]"))
    assert row.cost(facts).interval == 1024 + 56
    row, facts = facts_of("nc_matmul_mx", TRN3)
    other, half = facts_of("nc_matmul", TRN3)
    assert row.cost(facts) == other.cost(half)
    assert row.cost(facts).interval == 512 + 4
