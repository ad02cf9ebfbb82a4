"""Test which instructions are delayed, in printed programs."""

from nkic.compiler.depend import depend
from nkic.compiler.tight import sink
from nkic.machine.targets import TRN2, Buffer
from nkic.program.program import instructions
from tests.programs import copy, declare, op, program

WHOLE = "[0+128, 0; 1x64]"
TENSORS = [declare(i, f"t{i}", "128, 64") for i in range(4)]


def order(*body: str) -> list[str]:
    """Return the instructions' names in their new order, in an SBUF that is too small."""
    found = program("\n".join([*TENSORS, "core", *(f"  {line}" for line in body)]))
    (graph,) = depend(found)
    moved, _ = sink(found.cores[0], graph, {Buffer.SBUF}, TRN2)
    return [one.row.name for one in instructions(moved)]


def other(number: int) -> str:
    """Return an instruction that is independent of the others."""
    return op(number, "memset", dst=f"%3{WHOLE}", value="0.0")


def test_a_first_write_is_put_off_until_it_is_needed() -> None:
    body = [
        op(0, "iota", "gpsimd", dst=f"%0{WHOLE}", pattern="((1, 64),)", offset="0"),
        other(1),
        other(2),
        copy(3, f"%1{WHOLE}", f"%0{WHOLE}"),
    ]
    assert order(*body) == ["memset", "memset", "iota", "tensor_copy"]


def test_what_reads_its_own_destination_stays() -> None:
    """%0 is already in use: delaying an addition to it frees nothing."""
    body = [
        op(0, "memset", dst=f"%0{WHOLE}", value="1.0"),
        op(1, "reciprocal", dst=f"%0{WHOLE}", data=f"%0{WHOLE}"),
        other(2),
        other(3),
        copy(4, f"%1{WHOLE}", f"%0{WHOLE}"),
    ]
    assert order(*body) == ["memset", "reciprocal", "memset", "memset", "tensor_copy"]


def test_what_writes_again_what_was_read_stays() -> None:
    body = [
        op(0, "memset", dst=f"%0{WHOLE}", value="1.0"),
        copy(1, f"%1{WHOLE}", f"%0{WHOLE}"),
        op(2, "reciprocal", dst=f"%0{WHOLE}", data=f"%1{WHOLE}"),
        other(3),
        other(4),
        op(
            5, "tensor_tensor", dst=f"%2{WHOLE}", data1=f"%0{WHOLE}", data2=f"%1{WHOLE}", op="'add'"
        ),
    ]
    names = order(*body)
    assert names.index("reciprocal") == 2
