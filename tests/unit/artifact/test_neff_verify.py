"""Well-formed programs that must be rejected: each rule of the verifier, one at a time."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from nkic.artifact.encode import write
from nkic.artifact.format import LIMITS
from nkic.artifact.read import load
from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    OffsetRecord,
    ParameterRecord,
    PatternRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.artifact.verify import Unsound, check, verify
from nkic.base.diagnostics import ArtifactFailed
from nkic.machine import dtypes
from nkic.machine.operands import Register
from nkic.machine.targets import TARGETS, Buffer, Engine
from tests.harness.executables import (
    A_TILE,
    BODY,
    COUNT,
    DONE,
    F32,
    I32,
    INDEX,
    LOAD,
    LOOP,
    NEW,
    OUT_TILE,
    ROWS,
    SCALED,
    SET,
    STORE,
    TABLE,
    TENSORS,
    WHILE,
    A,
    hbm,
    sample,
    sbuf,
    whole,
)
from tests.harness.tamper import refused

Item = InstructionRecord | LoopRecord


def stream(*items: Item, engine: Engine = Engine.VECTOR, queue: int = 0) -> StreamRecord:
    return StreamRecord(0, engine, queue, items)


def running(*items: Item, engine: Engine = Engine.VECTOR, **more: Any) -> Executable:
    return replace(sample(), streams=(stream(*items, engine=engine),), **more)


def with_tensor(index: int, **changes: Any) -> Executable:
    """Return the sample with one tensor changed, and no instructions."""
    tensors = list(TENSORS)
    tensors[index] = tensors[index]._replace(**changes)
    return replace(sample(), tensors=tuple(tensors), streams=())


def with_extra(tensor: TensorRecord, **more: Any) -> Executable:
    return replace(sample(), tensors=(*TENSORS, tensor), streams=(), **more)


def outcome(executable: Executable) -> tuple[str, str]:
    return refused(lambda: verify(executable))


SCALE = SCALED._replace(waits=())


def scale(dst: Any = OUT_TILE, data: Any = A_TILE, factor: Any = 2.5, *hidden: Any) -> Item:
    return SCALE._replace(operands=(dst, data, factor, *hidden))


def test_the_sample_is_sound() -> None:
    verify(sample())
    layers: list[str] = []
    data = write(sample(), embed_source=True)
    assert load(data, rows=ROWS, passed=layers.append) == sample()
    assert layers == ["container and hashes", "schema", "program"]


SBUF_BYTES = TARGETS["trn2"].sbuf_usable
PSUM_BYTES = TARGETS["trn2"].psum_bytes


@pytest.mark.parametrize(
    "tensor",
    [
        sbuf("end", (128, 4), SBUF_BYTES - 16),
        sbuf("corner", (1, 1), 0)._replace(partition=127),
        sbuf("psum", (128, PSUM_BYTES // 4), 0)._replace(buffer=Buffer.PSUM),
        sbuf("one", (128,), 0),
        hbm("scalar", "internal", ()),
    ],
)
def test_tensors_may_fill_their_memories(tensor: TensorRecord) -> None:
    verify(with_extra(tensor))


@pytest.mark.parametrize(
    ("tensor", "says"),
    [
        (sbuf("t", (128, 4), SBUF_BYTES - 12), "sbuf of trn2 has 212,728"),
        (sbuf("t", (128, 4), -4), "bytes -4 to 12"),
        (sbuf("t", (2, 4), 0)._replace(partition=127), "partitions 127 to 129; sbuf has 128"),
        (sbuf("t", (129, 4), 0), "partitions 0 to 129"),
        (sbuf("t", (1, 4), 0)._replace(partition=-1), "partitions -1 to 0"),
        (sbuf("t", (1, PSUM_BYTES), 0)._replace(buffer=Buffer.PSUM), "psum of trn2 has 16,384"),
        (sbuf("t", (1, 4), 2), "byte 2 is not a multiple of the 4 bytes of float32"),
        (sbuf("t", (), 0), "needs a partition dimension"),
        (sbuf("t", (1, 4), 0, core=1), "core 1 in a program for 1 cores"),
        (sbuf("t", (1, 4), 0, core=-1), "core -1"),
        (hbm("t", "internal", (4,))._replace(core=0), "shared_hbm of core 0"),
        (hbm("t", "internal", (4,))._replace(byte=4), "an address in HBM"),
        (hbm("t", "internal", (0, 4)), "shape (0, 4)"),
        (hbm("t", "internal", (1,) * 9), "beyond 8 dimensions"),
        (hbm("t", "internal", (2**31,)), "1 to 2,147,483,647"),
        (hbm("t", "internal", (4,))._replace(place=4), "no place 4"),
    ],
)
def test_tensors_outside_their_memories(tensor: TensorRecord, says: str) -> None:
    code, message = outcome(with_extra(tensor))
    assert code == "NKI0808"
    assert "tensor %6 `t`: " in message
    assert says in message


@pytest.mark.parametrize(
    ("executable", "code", "says"),
    [
        (replace(sample(), target="trn9"), "NKI0807", "unknown target `trn9`"),
        (replace(sample(), target="gen3"), "NKI0807", "unknown target `gen3`"),
        (replace(sample(), cores=3), "NKI0807", "3 cores; trn2 has 2"),
        (replace(sample(), semaphores=257), "NKI0807", "257 semaphores per core; trn2 has 256"),
        (replace(sample(), registers=4097), "NKI0807", "4097 registers"),
        (
            with_extra(hbm("big", "internal", (1 << 17, 1 << 15))),
            "NKI0806",
            "tensors in HBM take 17,179,885,584 bytes; the limit is 17,179,869,184",
        ),
        (with_tensor(0, role="internal"), "NKI0807", "input `a` is a tensor of role internal"),
        (with_tensor(1, role="internal"), "NKI0807", "output `output_0` is a tensor of role"),
        (with_tensor(5, role="input"), "NKI0807", "role input are not the same"),
        (with_tensor(2, role="internal"), "NKI0807", "content for %2: internal in shared_hbm"),
        (with_tensor(2, shape=(5,)), "NKI0808", "constant %2 has 16 bytes, not 20"),
        (with_tensor(5, role="constant"), "NKI0807", "constant %5 has no content"),
        (replace(sample(), constants={}), "NKI0807", "constant %2 has no content"),
        (replace(sample(), constants={2: b"", 3: b""}), "NKI0808", "constant %2 has 0 bytes"),
        (replace(sample(), constants={**sample().constants, 6: b""}), "NKI0807", "not a tensor"),
        (replace(sample(), constants={**sample().constants, 3: b""}), "NKI0807", "internal in sb"),
    ],
)
def test_figures_and_roles(executable: Executable, code: str, says: str) -> None:
    number, message = outcome(executable)
    assert number == code
    assert says in message


def test_an_output_may_begin_with_content_and_an_input_may_be_one() -> None:
    verify(replace(sample(), constants={**sample().constants, 1: bytes(8192)}))
    verify(replace(sample(), outputs=(*sample().outputs, ParameterRecord("a", 0))))


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ((ParameterRecord("a", 0), ParameterRecord("a", 0)), "two inputs have the same name"),
        ((ParameterRecord("a", 0), ParameterRecord("b", 0)), "role input are not the same"),
        ((ParameterRecord("a", 3),), "input `a` is in sbuf"),
        ((ParameterRecord("a", 6),), "there is no tensor %6"),
        ((ParameterRecord("../a", 0),), "characters"),
        ((ParameterRecord("a/b", 0),), "characters"),
        ((ParameterRecord("", 0),), "characters"),
        ((), "role input are not the same"),
    ],
)
def test_inputs(inputs: tuple[ParameterRecord, ...], says: str) -> None:
    code, message = outcome(replace(sample(), inputs=inputs))
    assert code == "NKI0807"
    assert says in message


def test_names_of_parts_of_arguments_are_allowed() -> None:
    inputs = (ParameterRecord("weights[0].scale-1", 0),)
    verify(replace(sample(), inputs=inputs))


@pytest.mark.parametrize(
    ("streams", "says"),
    [
        ((StreamRecord(1, Engine.VECTOR, 0, ()),), "core1.vector: the program is for 1 cores"),
        ((StreamRecord(0, Engine.VECTOR, 1, ()),), "queue 1; trn2 has 1"),
        ((StreamRecord(0, Engine.DMA, 8, ()),), "core0.dma8: queue 8; trn2 has 8"),
        ((stream(), stream()), "core0.vector appears twice"),
    ],
)
def test_streams(streams: tuple[StreamRecord, ...], says: str) -> None:
    code, message = outcome(replace(sample(), streams=streams))
    assert code == "NKI0807"
    assert says in message


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ({"start": 1}, "partitions 1 to 129; the tensor has 128"),
        ({"start": -1}, "partitions -1 to 127"),
        ({"partitions": 0}, "partitions 0 to 0"),
        ({"offset": 1}, "bytes 4 to 68; the tensor has 64"),
        ({"offset": -1}, "bytes -4 to 60"),
        ({"dims": ((1, 17),)}, "bytes 0 to 68"),
        ({"dims": ((-1, 16),)}, "bytes -60 to 4"),
        ({"dims": ((8, 3), (1, 8))}, "bytes 0 to 96"),
        ({"dims": ((1, 0),)}, "a dimension without elements"),
        ({"dims": ((1, -1),)}, "a dimension without elements"),
        ({"dims": ((2**62, 5),)}, "bytes 0 to 73,786,976,294,838,206,468"),
        ({"dims": ((0, 2**31), (0, 2**31))}, "elements; no memory holds more"),
        ({"tensor": 6}, "there is no tensor %6"),
        ({"tensor": -1}, "there is no tensor %-1"),
    ],
)
def test_patterns_outside_their_tensors(pattern: dict[str, Any], says: str) -> None:
    code, message = outcome(running(scale(data=A_TILE._replace(**pattern))))
    assert code in ("NKI0807", "NKI0808")
    assert "core0.vector item 0, scale: " in message
    assert says in message


@pytest.mark.parametrize(
    "dims",
    [((1, 16),), ((8, 2), (1, 8)), ((0, 4), (4, 4)), ((15, 2),), ((4, 4),)],
)
def test_patterns_inside_their_tensors(dims: tuple[tuple[int, int], ...]) -> None:
    pattern = A_TILE._replace(dims=dims)
    verify(running(scale(dst=OUT_TILE._replace(dims=dims), data=pattern)))
    backwards = tuple((-step, num) for step, num in dims)
    last = sum(step * (num - 1) for step, num in dims)
    verify(
        running(
            scale(
                dst=OUT_TILE._replace(dims=dims), data=pattern._replace(dims=backwards, offset=last)
            )
        )
    )


def test_patterns_in_hbm() -> None:
    verify(running(LOAD, engine=Engine.DMA))
    for changed in (A._replace(start=1), A._replace(partitions=1)):
        item = LOAD._replace(operands=(A_TILE, changed))
        assert "partitions in HBM" in outcome(running(item, engine=Engine.DMA))[1]
    item = LOAD._replace(operands=(A_TILE, A._replace(offset=1)))
    assert "bytes 4 to 8,196; the tensor has 8,192" in outcome(running(item, engine=Engine.DMA))[1]


def test_elements_must_divide_their_tensor() -> None:
    odd = sbuf("odd", (128, 3), 6, dtypes.DTYPES["bfloat16"])
    tile = A_TILE._replace(tensor=6, dims=((1, 1),), dtype=F32)
    executable = running(scale(data=tile), tensors=(*TENSORS, odd))
    code, message = outcome(executable)
    assert code == "NKI0808"
    assert "4-byte elements do not divide a tensor of 6 bytes at 6" in message


def test_a_core_reaches_its_own_tensors_and_shared_ones_only() -> None:
    tensors = tuple(t._replace(core=1) if t.core == 0 else t for t in TENSORS)
    code, message = outcome(running(SCALE, cores=2, tensors=tensors))
    assert code == "NKI0807"
    assert "access to %4 `out_tile`: it belongs to core 1" in message
    other = StreamRecord(1, Engine.VECTOR, 0, (SCALE,))
    verify(replace(sample(), cores=2, tensors=tensors, streams=(other,)))


@pytest.mark.parametrize(
    ("item", "engine", "says"),
    [
        (SCALE, Engine.GPSIMD, "runs on vector, scalar, not on gpsimd"),
        (SCALE._replace(row=NEW), Engine.VECTOR, "needs NeuronCore-v4; trn2 is v3"),
        (SCALE._replace(operands=(OUT_TILE,)), Engine.VECTOR, "too few operands"),
        (SCALE._replace(attributes=()), Engine.VECTOR, "wrong number of attributes"),
        (SCALE._replace(operands=(OUT_TILE, A_TILE, None, A_TILE)), Engine.VECTOR, "belong to no"),
        (scale(factor=OUT_TILE), Engine.VECTOR, "16 elements per partition"),
        (scale(data=2.0), Engine.VECTOR, "`data` is 2.0"),
        (scale(factor=Register(0)), Engine.VECTOR, "`factor` is a register"),
        (scale(data=A), Engine.VECTOR, "in shared_hbm"),
        (
            scale(data=A_TILE._replace(dims=((1, 8),))),
            Engine.VECTOR,
            "scale: `data` has 1024 elements, not 2048",
        ),
        (
            SCALE._replace(attributes=("add", 1, 0.0, (), None)),
            Engine.VECTOR,
            "attribute reverse has a value that it cannot have",
        ),
    ],
)
def test_instructions_that_the_table_refuses(
    item: InstructionRecord, engine: Engine, says: str
) -> None:
    code, message = outcome(running(item, engine=engine))
    assert code == "NKI0809"
    assert says in message


def test_what_was_legal_once_is_not_legal_with_equal_values_of_another_type() -> None:
    """1 == 1.0 == True, so a cache of legal instructions must not compare by equality alone."""
    good = SCALE._replace(attributes=("add", True, 0.0, (), None))
    bad = SCALE._replace(attributes=("add", 1, 0.0, (), None))
    verify(running(good, good))
    assert "item 1, scale: attribute reverse" in outcome(running(good, bad))[1]


WITH_ROWS = (*TENSORS, sbuf("rows", (4, 1), 192, I32))
PLACES = whole(len(TENSORS), WITH_ROWS[-1])
DYNAMIC = A_TILE._replace(dims=((1, 16),), dynamic=OffsetRecord("scalar", 3, 1, 16, 0))


def test_dynamic_offsets() -> None:
    verify(running(scale(OUT_TILE, DYNAMIC, 2.5, Register(0))))
    verify(running(scale(OUT_TILE, DYNAMIC, 2.5, INDEX)))
    gather = A._replace(dims=((16, 4), (1, 16)), dynamic=OffsetRecord("vector", 2, 16, 128, 0))
    tile = A_TILE._replace(partitions=4)
    load = LOAD._replace(operands=(tile, gather, PLACES))
    verify(running(load, engine=Engine.DMA, tensors=WITH_ROWS))
    in_hbm = LOAD._replace(operands=(tile, gather, TABLE))
    assert "must be in sbuf" in outcome(running(in_hbm, engine=Engine.DMA))[1]


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (
            scale(OUT_TILE, DYNAMIC._replace(dynamic=OffsetRecord("scalar", 2, 1, 16, 0))),
            "in operand 2",
        ),
        (scale(OUT_TILE, DYNAMIC), "in operand 3, which holds none"),
        (scale(OUT_TILE, DYNAMIC, 2.5, 7), "neither tile nor register"),
        (scale(OUT_TILE, DYNAMIC, 2.5, None), "neither tile nor register"),
        (scale(OUT_TILE, DYNAMIC, 2.5, DYNAMIC), "neither tile nor register"),
        (scale(OUT_TILE, DYNAMIC, 2.5, A_TILE), "of type float32"),
        (scale(OUT_TILE, DYNAMIC, 2.5, Register(0), Register(1)), "belong to no dynamic offset"),
        (
            scale(
                OUT_TILE,
                DYNAMIC._replace(dynamic=OffsetRecord("scalar", 3, 1, 0, 0)),
                2.5,
                Register(0),
            ),
            "limit 0",
        ),
        (
            scale(
                OUT_TILE,
                DYNAMIC._replace(dynamic=OffsetRecord("scalar", 3, 1, 1, 9)),
                2.5,
                Register(0),
            ),
            "axis 9",
        ),
        (
            scale(
                OUT_TILE,
                DYNAMIC._replace(dynamic=OffsetRecord("vector", 3, 1, 1, 0)),
                2.5,
                Register(0),
            ),
            "a register cannot hold many offsets",
        ),
        (
            scale(
                OUT_TILE, DYNAMIC._replace(dynamic=OffsetRecord("vector", 3, 1, 1, 0)), 2.5, INDEX
            ),
            "over no dimension in HBM",
        ),
    ],
)
def test_dynamic_offsets_that_lead_nowhere(item: InstructionRecord, says: str) -> None:
    code, message = outcome(running(item))
    assert code == "NKI0809"
    assert says in message


def test_the_step_of_gathered_rows_is_not_what_they_reach() -> None:
    rows = A._replace(dims=((10**6, 4), (1, 16)), dynamic=OffsetRecord("vector", 2, 16, 128, 0))
    tile = A_TILE._replace(partitions=4)
    load = LOAD._replace(operands=(tile, rows, PLACES))
    verify(running(load, engine=Engine.DMA, tensors=WITH_ROWS))
    static = LOAD._replace(operands=(tile, rows._replace(dynamic=None)))
    assert outcome(running(static, engine=Engine.DMA))[0] == "NKI0808"


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ((DONE._replace(signals=(2,)),), "semaphore s2; the program has 2 per core"),
        ((DONE._replace(waits=((-1, 1),)),), "semaphore s-1"),
        ((DONE._replace(waits=((0, 0),)),), "a wait for 0 of semaphore s0"),
        ((DONE._replace(waits=((1, 1), (1, 1))),), "two waits for one semaphore among s1, s1"),
        ((DONE._replace(operands=(A_TILE,)),), "operands without an instruction"),
        ((SET._replace(operands=(Register(2),)),), "register r2; the program has 2"),
        ((SET._replace(operands=(Register(-1),)),), "register r-1"),
        ((LOOP._replace(counter=Register(2), length=1), DONE), "register r2"),
        ((LOOP._replace(stop=Register(2), length=1), DONE), "register r2"),
        ((WHILE._replace(condition=Register(2)), DONE), "register r2"),
        ((LOOP,), "a loop over 2 items; 0 follow"),
        ((LOOP, DONE), "a loop over 2 items; 1 follow"),
        ((LOOP._replace(length=0), DONE), "a loop over 0 items"),
        ((LOOP._replace(length=-1), DONE), "a loop over -1 items"),
        ((LOOP, DONE, LOOP._replace(length=1), DONE), "item 2, loop: a loop over 1 items; 0"),
        ((LOOP._replace(step=0, length=1), DONE), "step 0"),
        ((LOOP._replace(step=-1, length=1), DONE), "step -1"),
        ((WHILE._replace(counter=Register(0)), DONE), "a counter or a condition, not both"),
        ((DONE._replace(place=4),), "there is no place 4"),
    ],
)
def test_what_items_refer_to(items: tuple[Item, ...], says: str) -> None:
    code, message = outcome(running(*items))
    assert code == "NKI0807"
    assert says in message


def test_a_semaphore_has_one_stream_at_each_end() -> None:
    signal, wait = DONE._replace(signals=(0,)), DONE._replace(signals=(), waits=((0, 1),))
    pairs = {"signalled": signal, "waited for": wait}
    for how, item in pairs.items():
        streams = (stream(item), stream(item, engine=Engine.SCALAR))
        code, message = outcome(replace(sample(), streams=streams))
        assert code == "NKI0807"
        assert f"core0.scalar item 0, empty slot: semaphore s0 is also {how} by core0.v" in message
    verify(replace(sample(), streams=(stream(signal), stream(wait, engine=Engine.SCALAR))))
    cores = tuple(StreamRecord(core, Engine.VECTOR, 0, (signal,)) for core in range(2))
    verify(replace(sample(), cores=2, streams=cores))  # semaphores are numbered for each core


def test_loops_that_touch_at_their_ends() -> None:
    inner = LOOP._replace(length=1, counter=None)
    verify(running(LOOP._replace(length=2), inner, DONE, inner, DONE))
    verify(running(LOOP._replace(length=3), DONE, inner, DONE))


def test_refusals_say_where() -> None:
    bad = SCALE._replace(operands=(OUT_TILE, A_TILE._replace(offset=1), 2.5), place=3)
    executable = running(DONE._replace(signals=()), bad)
    data = write(executable)
    with pytest.raises(ArtifactFailed) as caught:
        load(data, rows=ROWS)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.notes == ("compiled from kernels/add.py:2:5",)
    offset = int(diagnostic.message.partition("byte ")[2].rstrip(")").replace(",", ""))
    assert data[offset : offset + 2] == b"\x95\x05"  # the instruction's record
    assert data[offset - 4 : offset] == b"\x93\x07\x90\x90"  # after the empty slot's
    message = refused(lambda: load(write(with_tensor(3, byte=2)), rows=ROWS))[1]
    offset = int(message.partition("byte ")[2].rpartition("byte ")[2].rstrip(")").replace(",", ""))
    start = write(with_tensor(3, byte=2))
    assert start[offset : offset + 2] == b"\x98\x01"


def test_rules_are_asked_once_per_distinct_instruction() -> None:
    asked = []
    row = SCALED.row
    assert row is not None
    spy = replace(row, rules=(lambda facts: asked.append(facts),))
    tiles = [A_TILE._replace(dims=((1, 1),), offset=i % 16) for i in range(100)]
    dst = OUT_TILE._replace(dims=((1, 1),))
    verify(running(*(SCALE._replace(row=spy, operands=(dst, tile, 2.5)) for tile in tiles)))
    assert len(asked) == 1


def test_limits_hold_for_executables_that_no_file_holds() -> None:
    many = DONE._replace(signals=(1,) * (LIMITS.waits + 1))
    assert outcome(running(many))[0] == "NKI0806"
    many = DONE._replace(signals=(), waits=((1, 1),) * (LIMITS.waits + 1))
    assert outcome(running(many))[0] == "NKI0806"


def test_body_and_store_are_part_of_the_sample() -> None:
    """The harness's items are valid one by one, so that each test above breaks only one rule."""
    verify(running(LOOP, BODY, DONE))
    verify(running(STORE, engine=Engine.DMA))
    verify(running(InstructionRecord(COUNT, (Register(1),), (5,), (), (), -1)))


# ------------------------------------------------------------------------------------------------
# The verifier's result for one record must not let a similar record pass.


def _stream(*items: InstructionRecord, engine: Engine = Engine.VECTOR) -> StreamRecord:
    return StreamRecord(0, engine, 0, items)


def _scale(dst: PatternRecord, data: PatternRecord) -> InstructionRecord:
    return SCALED._replace(operands=(dst, data, 2.5), waits=())


NARROW = A_TILE._replace(dims=((2, 4),), offset=3)  # elements 3 to 9 of 16


@pytest.mark.parametrize("pattern", [
    *({"offset": offset} for offset in (-4, -1, 0, 9, 10, 16)),
    *({"tensor": tensor} for tensor in (-1, 0, 6, 7, 8, 9, 10, 11)),
    *({"tensor": tensor, "offset": 9} for tensor in (6, 7, 8, 9)),
    *({"dims": ((2, 4),), "dtype": dtype} for dtype in (I32, dtypes.DTYPES["bfloat16"])),
    {"start": 1}, {"partitions": 127}, {"dims": ((2, 8),)}, {"dims": ((-2, 4),)},
])  # fmt: skip
def test_a_pattern_is_judged_alike_after_another_and_alone(pattern: dict[str, Any]) -> None:
    half = dtypes.DTYPES["bfloat16"]
    more = (
        sbuf("same", (128, 16), 512),  # 6
        sbuf("shorter", (128, 12), 576),
        sbuf("even", (128, 32), 640, half),
        sbuf("odd", (128, 32), 706, half),  # no multiple of 4
        sbuf("other", (128, 16), 772, core=1),
    )
    dst = OUT_TILE._replace(dims=((1, 4),))
    executable = replace(sample(), tensors=(*TENSORS, *more), cores=2)
    before = (_scale(dst, NARROW), _scale(dst, NARROW._replace(tensor=8)))

    def judged(*items: InstructionRecord) -> tuple[str, str]:
        changed = replace(executable, streams=(_stream(*items),))
        try:
            verify(changed)
        except ArtifactFailed:
            code, message = refused(partial(verify, changed))
            return code, message.replace(f"item {len(items) - 1},", "")
        return "", ""

    own = _scale(dst, NARROW._replace(**pattern))
    assert judged(*before) == ("", "")
    assert judged(*before, own) == judged(own)


def test_waits_and_signals_that_were_right_once_are_claimed_by_their_stream() -> None:
    signal, wait = DONE._replace(signals=(0,)), DONE._replace(signals=(), waits=((0, 1),))
    vector, scalar = _stream(signal, signal), _stream(wait, wait, engine=Engine.SCALAR)
    verify(replace(sample(), streams=(vector, scalar)))
    for late, how in ((signal, "signalled"), (wait, "waited for")):
        third = _stream(late, late, engine=Engine.GPSIMD)
        wrong = replace(sample(), streams=(vector, scalar, third))
        code, message = refused(partial(verify, wrong))
        assert code == "NKI0807"
        assert f"core0.gpsimd item 0, empty slot: semaphore s0 is also {how} by" in message


# ------------------------------------------------------------------------------------------------
# Test which record of a file an error refers to.


def test_refusals_count_records_from_the_first_stream() -> None:
    """A stream has its own record before those of its items."""
    streams, record = sample().streams, 0
    for number, one in enumerate(streams):
        twice = one._replace(core=1)
        with pytest.raises(Unsound) as caught:
            check(replace(sample(), streams=(*streams[:number], twice)), LIMITS)
        assert caught.value.record == record
        for at, item in enumerate(one.items):
            items = (*one.items[:at], item._replace(place=99), *one.items[at + 1 :])
            changed = (*streams[:number], one._replace(items=items), *streams[number + 1 :])
            with pytest.raises(Unsound, match="there is no place 99") as caught:
                check(replace(sample(), streams=changed), LIMITS)
            record += 1
            assert caught.value.record == record
        record += 1
