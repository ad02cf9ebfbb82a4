"""Test that columns stand for the records of a stream, from both makers."""

from dataclasses import replace

import pytest

from nkic.artifact.encode import write
from nkic.artifact.read import load
from nkic.artifact.records import (
    Columns,
    Executable,
    Head,
    InstructionRecord,
    Items,
    LoopRecord,
    StreamRecord,
    columns_of,
)
from nkic.artifact.verify import verify
from nkic.base.diagnostics import ArtifactFailed
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.specialise.request import Request
from tests.harness.executables import sample
from tests.unit.simulate.test_psum import KERNEL


def emitted() -> Executable:
    return compile_source(SourceFile("k.py", KERNEL), Request(), lambda *_: None).executable


def in_records(executable: Executable) -> Executable:
    """Return the executable without the columns that emit made."""
    streams = [stream._replace(items=tuple(stream.items)) for stream in executable.streams]
    return replace(executable, streams=tuple(streams))


def check(streams: tuple[StreamRecord, ...], columns: Columns) -> None:
    operands = columns.operands
    for stream, items in zip(streams, columns.streams, strict=True):
        references = iter(items.references)
        for record, head, iteration in zip(
            stream.items, items.heads, items.iterations, strict=True
        ):
            if isinstance(head, LoopRecord):
                assert (head, -1) == (record, iteration)
                continue
            its = tuple([operands.record(next(references)) for _ in range(head.count)])
            assert repr(head.record(its, iteration)) == repr(record)
        assert next(references, None) is None


@pytest.mark.parametrize("executable", [sample(), in_records(emitted())])
def test_columns_of_records(executable: Executable) -> None:
    check(executable.streams, columns_of(executable))


def test_columns_that_emit_makes() -> None:
    executable = emitted()
    columns = columns_of(executable)
    assert all(s.items is i for s, i in zip(executable.streams, columns.streams, strict=True))
    check(in_records(executable).streams, columns)


def test_both_makers_give_one_file() -> None:
    executable = emitted()
    assert write(executable) == write(in_records(executable))
    data = write(executable, embed_source=True)
    assert load(data) == executable == load(data)


def test_records_are_made_once_and_share_operands() -> None:
    items = emitted().streams[0].items
    assert isinstance(items, Items)
    assert all(map(lambda a, b: a is b, items, items.records))
    assert items[1:3] == items.records[1:3]
    assert hash(items) == hash(tuple(items))
    records = [item for item in items if isinstance(item, InstructionRecord)]
    made = {id(operand) for operand in items.operands.records}
    assert all(id(operand) in made for record in records for operand in record.operands)


def test_changed_records_replace_columns() -> None:
    """Columns belong to streams, so that a changed stream cannot be verified by former columns."""
    executable = emitted()
    stream = executable.streams[0]
    items = [
        item._replace(place=len(executable.places)) if isinstance(item, InstructionRecord) else item
        for item in stream.items
    ]
    changed = (stream._replace(items=tuple(items)), *executable.streams[1:])
    with pytest.raises(ArtifactFailed, match="there is no place"):
        verify(replace(executable, streams=changed))


def test_an_executable_without_streams_has_no_columns() -> None:
    operands, streams = columns_of(replace(sample(), streams=()))
    assert (streams, operands.records) == ([], [None])
    assert not any(isinstance(head, Head) for items in streams for head in items.heads)
