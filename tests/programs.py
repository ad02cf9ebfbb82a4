"""Programs for the tests of single stages, written in the text form of nkic.program.text.

Source places may be omitted: line n of the text then represents line n of a file `k.py`.
"""

from textwrap import dedent

from nkic.machine.instructions import ROWS
from nkic.machine.targets import Buffer
from nkic.program.program import Instruction, Program, instructions
from nkic.program.text import read_program


def program(text: str, target: str = "trn2") -> Program:
    """Parse a program; `text` begins after its first line, `program t on TARGET`."""
    lines = dedent(text).strip("\n").split("\n")
    numbered = [_with_place(line, number) for number, line in enumerate(lines, 1)]
    return read_program("\n".join([f"program t on {target}", *numbered]))


def _with_place(line: str, number: int) -> str:
    if " @" in line or not line.strip().startswith(("%", "#", "loop ")):
        return line
    return f"{line} @k.py:{number}:1-{number}:9"


def code(found: Program, core: int = 0) -> list[Instruction]:
    return list(instructions(found.cores[core]))


def declare(
    number: int, name: str, shape: str, buffer: Buffer = Buffer.SBUF, more: str = ""
) -> str:
    """Return a line that declares a float32 tensor."""
    return f"%{number} {name}: float32[{shape}] {buffer.value}{more}"


def op(number: int, name: str, engine: str = "vector", **values: str) -> str:
    """Return a line with an instruction: operands and attributes by name, defaults from the row."""
    row = ROWS[name]
    operands = ", ".join(f"{o.name}={values.get(o.name, o.default)}" for o in row.operands)
    attributes = ", ".join(
        f"{a.name}={values.get(a.name, repr(a.default))}" for a in row.attributes
    )
    return f"#{number} {engine} {name}({operands}; {attributes})"


def load(number: int, dst: str, src: str) -> str:
    return op(number, "dma_copy", "dma", dst=dst, src=src)


def copy(number: int, dst: str, src: str, engine: str = "vector") -> str:
    return op(number, "tensor_copy", engine, dst=dst, src=src)
