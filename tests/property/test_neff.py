"""Test random executables over the whole instruction table, and random damage to them."""

from copy import deepcopy
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.artifact.assemble import assemble
from nkic.artifact.disassemble import disassemble, dump
from nkic.artifact.encode import write
from nkic.artifact.read import info, load, read
from nkic.artifact.records import Executable, InstructionRecord, PatternRecord, StreamRecord
from nkic.base.diagnostics import ArtifactFailed
from tests.harness.executables import ROWS as SAMPLE_ROWS
from tests.harness.executables import sample
from tests.harness.random_programs import ALONE, legal_instructions, program, random_program
from tests.harness.tamper import contents, rebuilt, records, with_records

SEEDS = st.integers(0, 2**32)
EDGES: list[Any] = [0, 1, -1, 2, 3, 7, 127, 128, 129, 255, 2**16, 2**31 - 1, 2**31, -(2**31)]
EDGES += [2**32, 2**62, 2**63 - 1, -(2**63), 2**64 - 1, None, True, False, 0.0, 1.5, float("nan")]
EDGES += ["", "add", "x" * 5000, b"", b"\0\0\0\0", [], [0], [1, 2], [[1, 2]], {}, {1: 2}, [[[[1]]]]]


@pytest.mark.parametrize("name", ALONE)
def test_every_row_survives_the_file(name: str) -> None:
    instances = legal_instructions(name) or legal_instructions(name, "trn3")
    assert instances, f"no random instance of {name} is legal: teach random_programs its shapes"
    target = "trn2" if legal_instructions(name) else "trn3"
    streams: dict[Any, list[InstructionRecord]] = {}
    for engine, item in instances:
        streams.setdefault(engine, []).append(item)
    made = program(
        tuple(StreamRecord(0, engine, 0, tuple(items)) for engine, items in streams.items()), target
    )
    assert load(write(made)) == made
    assert assemble(dump(made)) == made


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 40))
def test_what_was_written_is_read(seed: int, size: int) -> None:
    made = random_program(Random(seed), size)
    data = write(made)
    assert load(data) == made
    assert write(read(data)) == data
    assert assemble(dump(made)) == made
    assert disassemble(made).count("\n") >= sum(len(s.items) for s in made.streams)


def paths(value: Any, at: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Return the positions in nested lists at which something can be replaced."""
    found = [at] if at else []
    if isinstance(value, list):
        for index, part in enumerate(value):
            found += paths(part, (*at, index))
    return found


def damaged(value: list[Any], rng: Random) -> list[Any]:
    """Return a copy with a few values replaced, repeated, moved or dropped."""
    copy = deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        *above, last = rng.choice(paths(copy) or [(0,)])
        parent = copy
        for index in above:
            parent = parent[index]
        if parent:
            _damage(parent, last, rng)
    return copy


def _damage(parent: list[Any], index: int, rng: Random) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        parent.insert(index, deepcopy(rng.choice(parent)))
    elif kind == 1:
        del parent[index]
    elif kind == 2 and type(parent[index]) is int:
        parent[index] += rng.choice((-1, 1, 2, 16, 128, 4096))
    elif kind == 3:
        parent[index] = deepcopy(rng.choice(parent))
    else:
        parent[index] = deepcopy(rng.choice(EDGES))


def refuses_or_verifies(data: bytes, rows: Any = None) -> Executable | None:
    """Reading a file raises nothing but `ArtifactFailed`, whatever its content."""
    try:
        info(data)
        found = load(data, rows=rows)
    except ArtifactFailed as error:
        (diagnostic,) = error.diagnostics
        assert diagnostic.code.number.startswith("NKI08")
        assert diagnostic.message.isprintable()
        return None
    assert_in_bounds(found)
    disassemble(found)
    dump(found)
    return found


def assert_in_bounds(executable: Executable) -> None:
    """Walk each element of each small pattern, unlike the verifier."""
    for stream in executable.streams:
        for item in stream.items:
            operands = item.operands if isinstance(item, InstructionRecord) else ()
            for operand in operands:
                if isinstance(operand, PatternRecord) and operand.elements < 5000:
                    assert_pattern(operand, executable)


def assert_pattern(pattern: PatternRecord, executable: Executable) -> None:
    tensor = executable.tensors[pattern.tensor]
    if tensor.buffer.on_chip:
        assert tensor.partition + pattern.start >= 0
        assert tensor.partition + pattern.start + pattern.partitions <= 128
        assert pattern.start + pattern.partitions <= tensor.shape[0]
    dims = pattern.standing.dims if pattern.dynamic else pattern.dims
    for indices in product(*(range(num) for _, num in dims)):
        element = pattern.offset + sum(i * step for i, (step, _) in zip(indices, dims, strict=True))
        assert element * pattern.dtype.size >= 0
        assert (element + 1) * pattern.dtype.size <= tensor.bytes


SECTIONS = st.sampled_from(
    ["code"] * 6 + ["layout"] * 3 + ["const", "meta", "src", "lines", "debug"]
)
SAMPLE = write(sample(), embed_source=True)


@settings(max_examples=600)
@given(SECTIONS, SEEDS)
def test_damage_with_right_hashes_is_refused_or_harmless(section: str, seed: int) -> None:
    changed = damaged(records(SAMPLE, section), Random(seed))
    try:
        data = with_records(SAMPLE, section, changed)
    except (OverflowError, ValueError):  # a value that msgpack cannot write cannot be in a file
        return
    refuses_or_verifies(data, SAMPLE_ROWS)


@settings(max_examples=300)
@given(SEEDS)
def test_damage_to_programs_over_the_whole_table(seed: int) -> None:
    rng = Random(seed)
    data = write(random_program(rng, 8))
    section = rng.choice(("code", "code", "layout"))
    try:
        data = with_records(data, section, damaged(records(data, section), rng))
    except (OverflowError, ValueError):
        return
    refuses_or_verifies(data)


@settings(max_examples=400)
@given(SECTIONS, SEEDS)
def test_damaged_bytes_with_right_hashes_are_refused_or_harmless(section: str, seed: int) -> None:
    rng = Random(seed)
    content = bytearray(contents(SAMPLE)[section])
    for _ in range(rng.choice((1, 1, 3))):
        content[rng.randrange(len(content))] = rng.randrange(256)
    refuses_or_verifies(rebuilt(SAMPLE, {section: bytes(content)}), SAMPLE_ROWS)


@settings(max_examples=150)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for start in (b"", SAMPLE[:11], SAMPLE[:60], SAMPLE[:-1]):
        assert refuses_or_verifies(start + data, SAMPLE_ROWS) in (None, sample())
