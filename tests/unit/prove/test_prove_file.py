"""Test the proof of a file: every change of the records read from its bytes is found."""

from dataclasses import replace
from typing import Any

import msgpack
import pytest

from nkic.artifact.encode import write
from nkic.artifact.records import Executable, LoopRecord, PatternRecord
from nkic.compiler.emit import emit
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Register
from nkic.prove import prove_file
from nkic.prove.file import KERNEL, MOVED, PATTERN, PLACED, REGISTER, TENSOR, _Code, _declared
from tests.harness.proofs import Made, differences, make, sections, slots, with_stream
from tests.programs import copy, declare, load, op, program

TILE, WORD = "[0+128, 0; 1x512]", "[0+1, 0; 1x1]"
TEXT = [
    *(f"%{i} h{i}: float32[128, 512] shared_hbm" for i in range(2)),
    *(declare(2 + i, f"t{i}", "128, 512") for i in range(2)),
    "%4 word: int32[1, 1] sbuf",
    "input x = %0",
    "output output_0 = %1",
    "core",
    load(0, f"%2{TILE}", "%0[0; 512x128, 1x512]"),
    op(1, "register_load", "sync", dst="$1", src=f"%4{WORD}"),
    "loop 1 $0 = 0 to $1 by 1",
    "  " + op(2, "reciprocal", dst=f"%3{TILE}", data=f"%2{TILE}"),
    "  " + copy(3, f"%2{TILE}", f"%3{TILE}", "gpsimd"),
    "  " + copy(4, "%3[0+128, 0; 1x1] by scalar $0 stride 1 limit 512 axis 1", "%2[0+128, 0; 1x1]"),
    "end",
    op(5, "activation", "scalar", dst=f"%3{TILE}", op="'copy'", data=f"%2{TILE}",
       bias="0.0", scale="2.0", reduce_op="None", reduce_res="None", reduce_cmd="'idle'"),
    load(6, "%1[0; 512x128, 1x512]", f"%3{TILE}"),
]  # fmt: skip


@pytest.fixture(scope="module")
def made() -> Made:
    found = make(program("\n".join(TEXT)))
    assert found.order() == []
    return found


def test_what_was_written_is_what_was_proven(made: Made) -> None:
    assert differences(made.schedule, made.file()) == []


def put(found: Executable, stream: int, at: int, *new: Any) -> Executable:
    record = found.streams[stream]
    changed = (*record.items[:at], *new, *record.items[at + 1 :])
    return with_stream(found, stream, record._replace(items=changed))


def test_every_record_that_is_missing_twice_or_changed_is_found(made: Made) -> None:
    found = made.file()
    count = 0
    for stream, at, item in slots(found):
        others: list[tuple[Any, ...]] = [(), (item, item)]
        if item.waits:
            others.append((item._replace(waits=item.waits[1:]),))
            others.append((item._replace(waits=((item.waits[0][0], 2), *item.waits[1:])),))
        if item.signals:
            others.append((item._replace(signals=item.signals[1:]),))
        same = [r for r in ROWS.values() if item.row and r.attributes == item.row.attributes]
        others += [(item._replace(row=row),) for row in same[:2] if row is not item.row]
        for new in others:
            findings = differences(made.schedule, put(found, stream, at, *new))
            assert {f.rule for f in findings} == {"file"}, (stream, at, new)
            count += 1
    assert count > 50


def test_every_neighbours_that_change_places_are_found(made: Made) -> None:
    found = made.file()
    for stream, record in enumerate(found.streams):
        for at in range(len(record.items) - 1):
            one, two = record.items[at : at + 2]
            if one == two:
                continue
            swapped = (*record.items[:at], two, one, *record.items[at + 2 :])
            changed = with_stream(found, stream, record._replace(items=swapped))
            assert [f.rule for f in differences(made.schedule, changed)] == ["file"]


@pytest.mark.parametrize(
    "change",
    [{"offset": 1}, {"start": 1}, {"partitions": 1}, {"tensor": 0}, {"dims": ((2, 3),)}],
)
def test_every_access_that_is_changed_is_found(made: Made, change: dict[str, Any]) -> None:
    found, count = made.file(), 0
    for stream, at, item in slots(found):
        for number, operand in enumerate(item.operands):
            if not isinstance(operand, PatternRecord):
                continue
            other = operand._replace(**change)
            if other == operand:
                continue
            operands = (*item.operands[:number], other, *item.operands[number + 1 :])
            changed = put(found, stream, at, item._replace(operands=operands))
            assert [f.rule for f in differences(made.schedule, changed)] == ["file"]
            count += 1
    assert count >= 8


@pytest.mark.parametrize(
    "dynamic",
    [None, ("vector", 2, 1, 512, 1), ("scalar", 2, 2, 512, 1), ("scalar", 2, 1, 9, 1),
     ("scalar", 2, 1, 512, 0), ("scalar", 1, 1, 512, 1), ("scalar", 99, 1, 512, 1)],
)  # fmt: skip
def test_every_run_time_offset_that_is_changed_is_found(made: Made, dynamic: Any) -> None:
    found = made.file()
    stream, at, item = next(
        (s, at, item)
        for s, at, item in slots(found)
        if any(isinstance(o, PatternRecord) and o.dynamic for o in item.operands)
    )
    first, *rest = item.operands
    assert isinstance(first, PatternRecord) and first.dynamic == ("scalar", 2, 1, 512, 1)
    changed = item._replace(operands=(first._replace(dynamic=dynamic), *rest))
    assert [f.rule for f in differences(made.schedule, put(found, stream, at, changed))] == ["file"]
    other = item._replace(operands=(*item.operands[:-1], Register(1)))
    assert [f.rule for f in differences(made.schedule, put(found, stream, at, other))] == ["file"]


@pytest.mark.parametrize("value", [2, True, -0.0, 0.0, None, 2.5])
def test_every_number_and_attribute_that_is_changed_is_found(made: Made, value: Any) -> None:
    found = made.file()
    stream, at, item = next(i for i in slots(found) if i[2].row is ROWS["activation"])
    number = next(n for n, o in enumerate(item.operands) if o == 2.0)
    operands = (*item.operands[:number], value, *item.operands[number + 1 :])
    changed = put(found, stream, at, item._replace(operands=operands))
    assert [f.rule for f in differences(made.schedule, changed)] == ["file"]
    attributes = ("exp", *item.attributes[1:])
    changed = put(found, stream, at, item._replace(attributes=attributes))
    assert [f.rule for f in differences(made.schedule, changed)] == ["file"]


@pytest.mark.parametrize(
    "change",
    [{"partition": 1}, {"byte": 4}, {"core": 1}, {"role": "constant"}, {"name": "z"},
     {"shape": (127, 512)}],
)  # fmt: skip
@pytest.mark.parametrize("index", range(5))
def test_every_tensor_that_is_changed_is_found(
    made: Made, index: int, change: dict[str, Any]
) -> None:
    found = made.file()
    tensors = list(found.tensors)
    tensors[index] = tensors[index]._replace(**change)
    assert {f.rule for f in differences(made.schedule, replace(found, tensors=tuple(tensors)))} == {
        "file"
    }


def test_a_tensor_that_is_two_in_the_file_is_found(made: Made) -> None:
    """Otherwise one tensor would be written, and another of the same name and shape read."""
    found = made.file()
    stream, at, item = next(i for i in slots(found) if i[2].row is ROWS["reciprocal"])
    for number, operand in enumerate(item.operands):
        assert isinstance(operand, PatternRecord)
        twin = operand._replace(tensor=len(found.tensors))
        operands = (*item.operands[:number], twin, *item.operands[number + 1 :])
        changed = put(found, stream, at, item._replace(operands=operands))
        changed = replace(changed, tensors=(*found.tensors, found.tensors[operand.tensor]))
        assert {f.rule for f in differences(made.schedule, changed)} == {"file"}


@pytest.mark.parametrize(
    "change",
    [{"length": 2}, {"counter": None}, {"counter": Register(2)}, {"start": 1}, {"start": True},
     {"stop": 4}, {"stop": Register(0)}, {"step": 2}, {"condition": Register(1)}],
)  # fmt: skip
def test_every_loop_that_is_changed_is_found(made: Made, change: dict[str, Any]) -> None:
    found, count = made.file(), 0
    for stream, record in enumerate(found.streams):
        for at, item in enumerate(record.items):
            if isinstance(item, LoopRecord) and item._replace(**change) != item:
                changed = put(found, stream, at, item._replace(**change))
                assert [f.rule for f in differences(made.schedule, changed)] == ["file"]
                count += 1
    assert count


def test_other_streams_ports_and_targets_are_found(made: Made) -> None:
    found = made.file()
    first = found.streams[0]
    for changed in (
        replace(found, streams=found.streams[1:]),
        replace(found, streams=(found.streams[1], first, *found.streams[2:])),
        with_stream(found, 0, first._replace(queue=first.queue + 1)),
        replace(found, target="trn3"),
        replace(found, cores=2),
        replace(found, inputs=()),
        replace(found, outputs=found.inputs),
        replace(found, outputs=(found.outputs[0]._replace(name="y"),)),
    ):
        assert {f.rule for f in differences(made.schedule, changed)} == {"file"}


def test_a_constant_of_other_content_is_found() -> None:
    text = [
        *(f"%{i} c{i}: float32[128, 512] shared_hbm" for i in range(2)),
        *(declare(2 + i, f"t{i}", "128, 512") for i in range(2)),
        "core",
        *(load(i, f"%{2 + i}{TILE}", f"%{i}[0; 512x128, 1x512]") for i in range(2)),
    ]
    found = program("\n".join(text))
    size = 128 * 512 * 4
    zeros, ones = bytes(size), b"\1" * size
    done = make(replace(found, constants={0: zeros, 1: ones}))
    executable = done.file()
    assert differences(done.schedule, executable) == []
    one, two = executable.constants
    names = [executable.tensors[index].name for index in (one, two)]
    assert sorted(names) == ["c0", "c1"]
    first, second = (executable.constants[index] for index in (one, two))
    wrong: list[tuple[str, dict[int, bytes]]] = [
        (names[0], {two: second}),
        (names[1], {one: first, two: first}),
    ]
    for name, constants in wrong:
        (finding,) = differences(done.schedule, replace(executable, constants=constants))
        assert finding.what == f"the file has another content for constant %{name[1]}"
    swapped = {one: second, two: first}
    assert len(differences(done.schedule, replace(executable, constants=swapped))) == 2


@pytest.mark.parametrize("name", ["layout", "code", "const", "debug"])
@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x91", b"\x91\x90", b"\x93\x01\x02\x03"])
def test_sections_that_cannot_be_read_are_found(made: Made, name: str, content: bytes) -> None:
    good = sections(write(emit(made.schedule, {})))
    assert prove_file(made.schedule, good) == []
    findings = prove_file(made.schedule, {**good, name: content})
    assert {f.rule for f in findings} == {"file"}


MOVING = [  # docs/neff.md: records that tell a value from an earlier one, and where they do
    ("layout", 4, (1, 2)),
    ("code", 8, (1, 2, 3)),
]


@pytest.mark.parametrize(("name", "kind", "fields"), MOVING)
@pytest.mark.parametrize("step", [-1, 1, 99])
def test_every_step_that_is_changed_is_found(
    made: Made, name: str, kind: int, fields: tuple[int, ...], step: int
) -> None:
    good = sections(write(emit(made.schedule, {})))
    records = msgpack.unpackb(good[name])
    count = 0
    for record in records:
        for field in fields if record[0] == kind else ():
            record[field] += step
            findings = prove_file(made.schedule, {**good, name: msgpack.packb(records)})
            record[field] -= step
            assert {f.rule for f in findings} == {"file"}, (record, field)
            count += 1
    assert count


@pytest.mark.parametrize("step", [-1, 1, 99])
def test_every_reference_that_is_changed_is_found(made: Made, step: int) -> None:
    good = sections(write(emit(made.schedule, {})))
    records = msgpack.unpackb(good["code"])
    for operands in [record[2] for record in records if record[0] == 5]:
        for number in range(len(operands)):
            operands[number] += step
            findings = prove_file(made.schedule, {**good, "code": msgpack.packb(records)})
            operands[number] -= step
            assert {f.rule for f in findings} == {"file"}
    assert prove_file(made.schedule, {**good, "code": msgpack.packb(records)}) == []


def test_records_after_the_last_stream_are_found(made: Made) -> None:
    good = sections(write(emit(made.schedule, {})))
    records = msgpack.unpackb(good["code"], use_list=False)
    code = msgpack.packb((*records, (7, (), ())))
    (finding,) = prove_file(made.schedule, {**good, "code": code})
    assert finding.what == "the file has other streams"


@pytest.mark.parametrize("back", [2, 3, 0, -1])
def test_a_tensor_is_told_from_an_earlier_tensor_alone(back: int) -> None:
    """A difference from the kernel, or from a later record, is not a tensor."""
    records = ((TENSOR, 7, 64), (PLACED, back, 32))
    with pytest.raises((ValueError, LookupError)):
        _declared(iter(records))
    with pytest.raises((ValueError, LookupError)):
        _declared(iter(((TENSOR, 7, 64), (KERNEL, 2), (PLACED, 1, 32))))
    found, _ = _declared(iter((records[0], (PLACED, 1, 32), (PLACED, 1, 8))))
    assert found[1:] == [((TENSOR, 7), 96), ((TENSOR, 7), 104)]


@pytest.mark.parametrize("back", [2, 3, 0, -1])
def test_a_pattern_is_told_from_an_earlier_pattern_alone(back: int) -> None:
    first = (PATTERN, 5, 2, 0, 128, 64, (1, 64))
    records = ((REGISTER, 2), first, (MOVED, back, 1, 32))
    with pytest.raises((ValueError, LookupError)):
        _Code(iter(records))
    found = _Code(iter((*records[:2], (MOVED, 1, 1, 32), (MOVED, 2, 3, -64)))).values
    kind = (2, 0, 128, (1, 64))
    assert found[2:] == [(kind, 6, 96), (kind, 8, 0)]


def test_a_stream_that_the_file_lacks_is_found(made: Made) -> None:
    """The last stream: the records end where it should begin."""
    (streams,) = made.schedule.cores
    for count in range(len(streams)):
        short = replace(made.schedule, cores=(streams[:count],))
        findings = prove_file(made.schedule, sections(write(emit(short, {}))))
        assert "the file has other streams" in [finding.what for finding in findings]
