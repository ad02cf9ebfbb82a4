"""An example of every instruction: a kernel around the legal instance of tests/unit/instances.py.

The site shows it with what compiling and running it prints.
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import nkic
from nkic.base.source import SourceFile
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Access, AttributeKind, Register, Row, Tile
from nkic.machine.targets import Buffer
from tests.bench.instructions import ON_TWO_CORES, RANKS, target_of
from tests.unit.instances import LEGAL

OPERATORS = {AttributeKind.ALU, AttributeKind.ACTIVATION}
PARTLY = {"tensor_copy_predicated", "nonzero_with_count"}  # they write some elements of dst
# Arguments of collectives that are lists of tensors, by operand.
LISTS = {"src": "srcs", "dst": "dsts", "src0": "srcs0", "src1": "srcs1"}

# Bodies of kernels whose calls are not the operands of their row: arguments, then lines.
_OUT = "out = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)"
_REGISTER = f"{_OUT}\nnisa.register_store(dst=out, src=counter)\nreturn out"
_SCALAR = f"{_OUT}\nnisa.scalar_store(dst=out, value=counter)\nreturn out"
_LOADED = """\
tile = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=data)"""
_CORES = """\
core = nl.program_id(0)
rows = slice(core * 128, core * 128 + 128)
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=data[rows, :])
out = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
"""
_CHUNKS = """\
src = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.private_hbm)
nisa.dma_copy(dst=src, src=data)
dst = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.private_hbm)
nisa.dma_copy(dst=dst, src=data)
# No rank sends anything: lengths and places of the chunks are zeros.
counts = nl.ndarray((3, 4), dtype=nl.uint32, buffer=nl.private_hbm)
nisa.dma_copy(dst=counts, src=nl.zeros((3, 4), dtype=nl.uint32, buffer=nl.sbuf))
groups = ncc.ReplicaGroup([[0, 1, 2, 3]])
{call}
out = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=dst)
return out"""
_PART = """\
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
part = data.ap([[512, 128], [1, 512]], scalar_offset=rank, indirect_dim=0)
nisa.dma_copy(dst=tile, src=part)
out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=tile)
return out"""
_PARTS = {"data": "float32[4, 128, 512]"}
_NUMBER = {"data": "int32[1, 1]"}
_MATRIX = {"data": "float32[128, 512]"}
_BOTH = {"data": "float32[256, 512]"}
BODIES: dict[str, tuple[dict[str, str], str]] = {
    "register_alloc": ({}, f"counter = nisa.register_alloc(5)\n{_REGISTER}"),
    "register_move": (
        {},
        "counter = nisa.register_alloc(0)\nother = nisa.register_alloc(5)\n"
        f"nisa.register_move(dst=counter, src=other)\n{_REGISTER}",
    ),
    "register_load": (
        _NUMBER,
        f"{_LOADED}\ncounter = nisa.register_alloc(0)\n"
        f"nisa.register_load(dst=counter, src=tile)\n{_REGISTER}",
    ),
    "scalar_load": (_NUMBER, f"{_LOADED}\ncounter = nisa.scalar_load(src=tile)\n{_SCALAR}"),
    "scalar_store": (_NUMBER, f"{_LOADED}\ncounter = nisa.scalar_load(src=tile)\n{_SCALAR}"),
    "scalar_compute": (
        _NUMBER,
        f"{_LOADED}\ncounter = nisa.scalar_load(src=tile) + 3\n{_SCALAR}",
    ),
    "rank_id": (_PARTS, f"rank = ncc.rank_id()\n{_PART}"),
    "collective_permute_implicit_current_processing_rank_id": (
        _PARTS,
        "rank = ncc.collective_permute_implicit_current_processing_rank_id(\n"
        "    iteration_id=1, replica_group=ncc.ReplicaGroup([[0, 1, 2, 3]])\n"
        f")\n{_PART}",
    ),
    "dma_compute": (
        {"a": "float32[128, 512]", "b": "bfloat16[128, 512]"},
        "tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)\n"
        "nisa.dma_compute(dst=tile, srcs=[a, b], reduce_op=nl.add)\n"
        "out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n"
        "nisa.dma_copy(dst=out, src=tile)\nreturn out",
    ),
    "core_barrier": (
        _BOTH,
        f"{_CORES}nisa.dma_copy(dst=out[rows, :], src=tile)\n"
        "nisa.core_barrier(data=out, cores=(0, 1))\nreturn out",
    ),
    "sendrecv": (
        _BOTH,
        f"{_CORES}other = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)\n"
        "nisa.sendrecv(\n    src=tile, dst=other, send_to_rank=1 - core, "
        "recv_from_rank=1 - core, pipe_id=0\n)\n"
        "nisa.dma_copy(dst=out[rows, :], src=other)\nreturn out",
    ),
    "collective_permute": (
        _MATRIX,
        "src = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.private_hbm)\n"
        "nisa.dma_copy(dst=src, src=data)\n"
        "dst = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.private_hbm)\n"
        "ncc.collective_permute([src], [dst], [(0, 1), (1, 2), (2, 3), (3, 0)])\n"
        "out = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)\n"
        "nisa.dma_copy(dst=out, src=dst)\nreturn out",
    ),
    **{
        f"{kind}{half}": (_MATRIX, _CHUNKS.format(call=call.format(kind=kind)))
        for kind in ("all_gather_v", "all_to_all_v")
        for half, call in {
            "": "ncc.{kind}([src], [dst], groups, counts)",
            "_prepare": "ready = ncc.{kind}_prepare([src], [dst], groups, counts)\n"
            "ncc.{kind}_trigger(ready)",
            "_trigger": "ready = ncc.{kind}_prepare([src], [dst], groups, counts)\n"
            "ncc.{kind}_trigger(ready)",
        }.items()
    },
}


class Example(NamedTuple):
    """The text of a kernel, and what its run prints."""

    kernel: str
    printed: str


class _Writer:
    """Collects the lines of a kernel that runs one instruction."""

    def __init__(self, row: Row) -> None:
        self.row, self.legal = row, LEGAL[row.name]
        self.collective = row.module == "nki.collectives"
        self.types: dict[str, str] = {}
        self.lines: list[str] = []
        self.given: dict[str, str] = {}
        self.results: list[tuple[str, Tile]] = []

    def kernel(self) -> str:
        if self.row.name in BODIES:
            self.types, body = BODIES[self.row.name]
            self.lines = body.splitlines()
            return "\n".join(self.text())
        for operand in self.row.operands:
            value = self.legal.get(operand.name)
            if isinstance(value, Tile):
                self.tile(operand.name, value, operand.access)
            elif isinstance(value, Register):
                self.lines.append(f"{operand.name} = nisa.register_alloc(5)")
                self.given[operand.name] = operand.name
            elif value is not None:
                self.given[operand.name] = repr(value)
        for attribute in self.row.attributes:
            if attribute.name in self.legal:
                self.given[attribute.name] = self.attribute(attribute.name, attribute.kind)
        self.lines += self.call()
        returned = [self.stored(name, tile) for name, tile in self.results]
        self.lines.append(f"return {', '.join(returned)}")
        return "\n".join(self.text())

    def tile(self, name: str, tile: Tile, access: Access) -> None:
        """Declare an operand: one that is read holds an argument of the kernel."""
        if access is not Access.READ:
            self.results.append((name, tile))
        if access is not Access.WRITE:
            self.types[name] = f"{tile.dtype.name}[{', '.join(map(str, shape(tile)))}]"
            if not tile.buffer.on_chip and not self.collective:
                self.given[name] = name
                return
        made = name if access is Access.WRITE else f"{name}_tile"
        memory = tile.buffer.value
        if not tile.buffer.on_chip:
            memory = "private_hbm" if self.collective else "shared_hbm"
        sizes = (tile.start + tile.partitions, *shape(tile)[1:]) if tile.start else shape(tile)
        self.lines.append(f"{made} = {declared(sizes, tile, memory)}")
        self.given[name] = f"{made}[{tile.start}:, :]" if tile.start else made
        if access is not Access.WRITE:
            self.lines.append(f"nisa.dma_copy(dst={self.given[name]}, src={name})")
        elif self.row.name in PARTLY:
            self.lines.append(f"nisa.memset(dst={made}, value=0)")

    def attribute(self, name: str, kind: AttributeKind) -> str:
        value = self.legal[name]
        if kind in OPERATORS:
            return f"nl.{value}"
        if kind is AttributeKind.GROUPS and name == "replica_group":
            return f"ncc.ReplicaGroup({[list(group) for group in value]})"
        if kind is AttributeKind.CHOICE:
            return f"nisa.{name}.{value}"
        if kind is AttributeKind.PATTERN:
            return repr([list(pair) for pair in value])
        return repr(value)

    def call(self) -> list[str]:
        given = self.given
        if self.collective:
            many = "_by_channel" if "implicit" in self.row.name else ""
            given = {
                (f"{LISTS[n]}{many}" if n in LISTS else n): (
                    f"[[{v}]]" if n in LISTS and many else f"[{v}]" if n in LISTS else v
                )
                for n, v in given.items()
            }
        listed = [f"{name}={value}" for name, value in given.items()]
        line = f"{self.row.called}({', '.join(listed)})"
        if len(line) <= 88:
            return [line]
        return [f"{self.row.called}(", *(f"    {each}," for each in listed), ")"]

    def stored(self, name: str, tile: Tile) -> str:
        """Store a result in HBM, and return its name there."""
        value = self.given[name]
        if tile.buffer is Buffer.PSUM:
            self.lines += [
                f"{name}_copy = {declared(shape(tile), tile, 'sbuf')}",
                f"nisa.tensor_copy(dst={name}_copy, src={value})",
            ]
            value = f"{name}_copy"
        if tile.buffer.on_chip or self.collective:
            out = "out" if len(self.results) == 1 else f"out_{name}"
            self.lines += [
                f"{out} = {declared(shape(tile), tile, 'shared_hbm')}",
                f"nisa.dma_copy(dst={out}, src={value})",
            ]
            return out
        return value

    def text(self) -> Iterator[str]:
        yield "# /// nkic"
        if (target := target_of(self.row).name) != "trn2":
            yield f'# target = "{target}"'
        if self.types:
            yield "# [args]"
            yield from (f'# {name} = "{kind}"' for name, kind in self.types.items())
        yield "# ///"
        yield "import nki"
        if "ncc." in self.row.called:
            yield "import nki.collectives as ncc"
        yield "import nki.isa as nisa"
        yield "import nki.language as nl"
        yield from ("", "", "@nki.jit", f"def kernel({', '.join(self.types)}):")
        yield from (f"    {line}" for line in self.lines)


def shape(tile: Tile) -> tuple[int, ...]:
    free = tuple(num for _, num in tile.dims)
    return (tile.partitions, *free) if tile.buffer.on_chip else free


def declared(sizes: tuple[int, ...], tile: Tile, memory: str) -> str:
    return f"nl.ndarray({sizes}, dtype=nl.{tile.dtype.name}, buffer=nl.{memory})"


def kernel(name: str) -> str:
    """Return the text of a kernel that runs one instruction."""
    return _Writer(ROWS[name]).kernel() + "\n"


def example(name: str) -> Example:
    """Compile and run the example of an instruction."""
    text = kernel(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lnc = 2 if name in ON_TWO_CORES or name.startswith("all_gather_v") else 1
        artifact = nkic.compile(SourceFile(f"{name}.py", text), lnc=lnc)
        if ROWS[name].module == "nki.collectives":
            printed = nkic.run_ranks(artifact, [{}] * RANKS, fill="randn(0)")[0].report
        else:
            printed = nkic.run(artifact, fill="randn(0)").report
    return Example(text, printed)
